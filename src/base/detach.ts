/** Returns a copy of `text` for long storage, because a substring keeps the whole original text in memory (V8). */
export function detach(text: string): string {
  return Buffer.from(text).toString();
}

export function clipped(text: string, most: number): string {
  return text.length <= most ? text : detach(text.slice(0, most));
}
