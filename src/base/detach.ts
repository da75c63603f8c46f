/**
 * Copies of strings that are kept for long. In V8 a substring refers to its parent and keeps all of it alive: ten
 * characters of a 64 KiB path retain 64 KiB for as long as they are referenced.
 */

/** Returns the same text as a string of its own. */
export function detach(text: string): string {
  return Buffer.from(text).toString();
}

/** Returns at most `most` characters of `text`; a truncated text is a string of its own. */
export function clipped(text: string, most: number): string {
  return text.length <= most ? text : detach(text.slice(0, most));
}
