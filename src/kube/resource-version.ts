/**
 * resourceVersions are decimal numbers up to 2^128 by contract (KEP-5504), so they are compared as text and never
 * converted to a JavaScript number. Only versions of one resource may be compared.
 */

/** What ParseUint accepts: a longer version could not be used in a request. */
const mostDigits = 20;
const zero = 0x30;

/** Below 0 if `a` is older than `b`, 0 if they are equal, above 0 if it is newer; "" is older than all. */
export function compareVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/**
 * Returns the oldest version of the cache from the apiserver's message for a version that is too old
 * (cacher/watch_cache.go); "" for other messages.
 */
export function oldestIn(message: string): string {
  const oldest = /^too old resource version: \d+ \((\d+)\)$/.exec(message)?.[1] ?? "";
  return isVersion(oldest) ? oldest : "";
}

/** Returns the previous version, at least 0. */
export function versionBefore(version: string): string {
  const number = BigInt(version);
  return number > 0n ? String(number - 1n) : version;
}

/** True for a version as apiservers assign it: `[1-9][0-9]*`, not too long. Called for every event, hence no RegExp. */
export function isVersion(text: string): boolean {
  if (text.length === 0 || text.length > mostDigits || text.charCodeAt(0) === zero) return false;
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - zero;
    if (digit < 0 || digit > 9) return false;
  }
  return true;
}
