/**
 * resourceVersions are decimal numbers up to 2^128 by contract (KEP-5504), so the proxy compares them as text. Only
 * versions of one resource can be compared.
 */

/** Maximum number of digits of a version: the apiserver's ParseUint rejects a longer version in a request. */
const mostDigits = 20;
const zero = 0x30;

/** Returns a negative number if `a` is older than `b`, and 0 if both are equal. "" is older than every version. */
export function compareVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Returns a watch cache's oldest version from the message of a 410 (cacher/watch_cache.go); otherwise "". */
export function oldestIn(message: string): string {
  const oldest = /^too old resource version: \d+ \((\d+)\)$/.exec(message)?.[1] ?? "";
  return isVersion(oldest) ? oldest : "";
}

export function versionBefore(version: string): string {
  const number = BigInt(version);
  return number > 0n ? String(number - 1n) : version;
}

/** True for a version as apiservers assign it, `[1-9][0-9]*`. Uses no RegExp, because it is called for every event. */
export function isVersion(text: string): boolean {
  if (text.length === 0 || text.length > mostDigits || text.charCodeAt(0) === zero) return false;
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - zero;
    if (digit < 0 || digit > 9) return false;
  }
  return true;
}
