/**
 * resourceVersions: decimal numbers up to 2^128 by their contract (KEP-5504), so they are compared as text and never
 * become a JavaScript number. Only versions of one resource may be compared.
 */

/** What ParseUint takes: a longer one could not be asked for again. */
const mostDigits = 20;
const zero = 0x30;

/** Below 0 when `a` is older than `b`, 0 when they are the same, above 0 when it is newer; "" is older than all. */
export function compareVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** In the apiserver's words for a version that is too old: where its cache begins (cacher/watch_cache.go). "" elsewhere. */
export function oldestIn(message: string): string {
  const oldest = /^too old resource version: \d+ \((\d+)\)$/.exec(message)?.[1] ?? "";
  return isVersion(oldest) ? oldest : "";
}

/** The one before it; not below 0. */
export function versionBefore(version: string): string {
  const number = BigInt(version);
  return number > 0n ? String(number - 1n) : version;
}

/** Is this a version that an apiserver gives an event: `[1-9][0-9]*`, not too long? Asked for every event: no RegExp. */
export function isVersion(text: string): boolean {
  if (text.length === 0 || text.length > mostDigits || text.charCodeAt(0) === zero) return false;
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - zero;
    if (digit < 0 || digit > 9) return false;
  }
  return true;
}
