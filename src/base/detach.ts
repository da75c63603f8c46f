/**
 * Texts that somebody remembers. V8 makes a piece of a text point into it, and so keep all of it alive: ten letters out of
 * a path of 64 KiB are 64 KiB for as long as anybody remembers them.
 */

/** The same text, pointing into no other. */
export function detach(text: string): string {
  return Buffer.from(text).toString();
}

/** At most so many characters of it, pointing into no other if that is not all. */
export function clipped(text: string, most: number): string {
  return text.length <= most ? text : detach(text.slice(0, most));
}
