/** Returns a copy of `text` to store for long: in V8 a substring keeps the whole original text in memory. */
export function detach(text: string): string {
  return Buffer.from(text).toString();
}

/** Returns `text` if it has at most `most` characters; otherwise a copy of its first `most` characters. */
export function clipped(text: string, most: number): string {
  return text.length <= most ? text : detach(text.slice(0, most));
}
