/**
 * Parses paths and queries as the apiserver's net/url does: byte by byte, in latin1 strings. Another parser (URL,
 * URLSearchParams) might see another request than the apiserver (A30).
 */
const percent = 0x25;
const ampersand = 0x26;
const plus = 0x2b;
const equals = 0x3d;

const digits = Int8Array.from({ length: 256 }, (_, byte) =>
  "0123456789abcdef".indexOf(String.fromCharCode(byte).toLowerCase()),
);

/** Returns the byte that the two characters after a `%` encode; -1 if they are no hexadecimal digits. */
function escapeAt(text: string, at: number): number {
  const high = digits[text.charCodeAt(at + 1)] ?? -1;
  const low = digits[text.charCodeAt(at + 2)] ?? -1;
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/** Decodes %XX, and `+` in queries. Undefined for a bad escape, where net/url rejects a path and skips a query's pair. */
export function unescape(text: string, blank: "+" | " "): string | undefined {
  if (!text.includes("%") && (blank === "+" || !text.includes("+"))) return text;
  if (!isEscaped(text)) return undefined;
  const bytes = Buffer.allocUnsafe(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    let byte = text.charCodeAt(at);
    if (byte === percent) {
      byte = escapeAt(text, at);
      at += 2;
    } else if (byte === plus) byte = blank.charCodeAt(0);
    bytes[length++] = byte;
  }
  return bytes.toString("latin1", 0, length);
}

/** True if every escape is valid. Checked before the text is copied, which costs more (A59). */
function isEscaped(text: string): boolean {
  for (let at = text.indexOf("%"); at >= 0; at = text.indexOf("%", at + 3))
    if (escapeAt(text, at) < 0) return false;
  return true;
}

/**
 * Returns the value of `key` in a query without `?`; "" without an `=`. The first of several pairs counts. Pairs that
 * net/url skips (with a `;` or an invalid escape) do not.
 */
export function firstValue(query: string, key: string): string | undefined {
  if (!query.includes(key) && !query.includes("%")) return undefined;
  for (let at = 0; at < query.length; ) {
    const next = query.indexOf("&", at);
    const end = next < 0 ? query.length : next;
    const keyEnd = endOfKey(query, at, key);
    const value = keyEnd < 0 ? undefined : valueIn(query.slice(at, end), keyEnd - at);
    if (value !== undefined) return value;
    at = end + 1;
  }
  return undefined;
}

/**
 * Returns a boolean as apimachinery converts it (runtime/conversion.go): only `0` and `false` are false, even `watch=`
 * is true. Undefined if the key is absent.
 */
export function flagIn(query: string, key: string): boolean | undefined {
  const value = firstValue(query, key);
  // Go's EqualFold takes U+017F, which is two bytes here, for an `s`.
  return value === undefined
    ? undefined
    : value !== "0" && value.replace("\xc5\xbf", "s").toLowerCase() !== "false";
}

/** Returns where the key at `at` ends if it is `key`, escaped or not; otherwise -1. */
function endOfKey(query: string, at: number, key: string): number {
  let here = at;
  for (let index = 0; index < key.length; index++) {
    const isEscape = query.charCodeAt(here) === percent;
    const byte = isEscape ? escapeAt(query, here) : query.charCodeAt(here);
    if (byte !== key.charCodeAt(index)) return -1;
    here += isEscape ? 3 : 1;
  }
  const after = query.charCodeAt(here);
  return here === query.length || after === equals || after === ampersand ? here : -1;
}

function valueIn(pair: string, keyEnd: number): string | undefined {
  return pair.includes(";") ? undefined : unescape(pair.slice(keyEnd + 1), " ");
}
