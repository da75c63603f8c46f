/** Returns a copy of a text that is kept for long. In V8 a substring keeps the whole text alive that it is a part of. */
export function detach(text: string): string {
  return Buffer.from(text).toString();
}

/** Returns at most `most` characters of `text`, as a copy if it is shortened. */
export function clipped(text: string, most: number): string {
  return text.length <= most ? text : detach(text.slice(0, most));
}
