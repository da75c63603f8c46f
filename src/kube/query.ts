/**
 * Parses paths and queries as Go's net/url in the apiserver does: byte by byte, in latin1 strings. Another parser (URL,
 * URLSearchParams) might find a different request in the same text (A30).
 */
const percent = 0x25;
const ampersand = 0x26;
const plus = 0x2b;
const equals = 0x3d;

const digits = Int8Array.from({ length: 256 }, (_, byte) =>
  "0123456789abcdef".indexOf(String.fromCharCode(byte).toLowerCase()),
);

/** Returns the byte that the `%XX` at `at` encodes; -1 if no two hexadecimal digits follow the `%`. */
function escapeAt(text: string, at: number): number {
  const high = digits[text.charCodeAt(at + 1)] ?? -1;
  const low = digits[text.charCodeAt(at + 2)] ?? -1;
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/**
 * Decodes %XX, and decodes `+` to `blank`. Returns undefined for an invalid %XX. Go's net/url rejects a path with an
 * invalid %XX. In a query, it skips only the pair that contains the invalid %XX.
 */
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

/** True if every escape is valid. Called before the text is copied, because the copy costs more time (A59). */
function isEscaped(text: string): boolean {
  for (let at = text.indexOf("%"); at >= 0; at = text.indexOf("%", at + 3))
    if (escapeAt(text, at) < 0) return false;
  return true;
}

/** Returns the query of a request's `:path`, without `?`; "": it has none. */
export function queryOf(target: string): string {
  const mark = target.indexOf("?");
  return mark < 0 ? "" : target.slice(mark + 1);
}

/**
 * Returns the value of `key` in a query without `?`; "" if the pair has no `=`; undefined if no pair has this key. Of
 * several such pairs, the first counts. Pairs that net/url skips (with a `;` or an invalid escape) do not count.
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
 * Returns the value of a boolean parameter as apimachinery converts it (runtime/conversion.go): only `0` and `false`
 * are false, so even `watch=` is true. Returns undefined if the key is absent.
 */
export function flagIn(query: string, key: string): boolean | undefined {
  const value = firstValue(query, key);
  // Go's EqualFold treats U+017F, which is two bytes in this latin1 string, like an `s`.
  return value === undefined
    ? undefined
    : value !== "0" && value.replace("\xc5\xbf", "s").toLowerCase() !== "false";
}

/** If the text at the position `at` is `key`, percent-encoded or not, returns the position after it; otherwise -1. */
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

/**
 * The keys of Kubernetes' own queries whose values are no secret. The values of all other keys are hidden, in whatever
 * way a client writes the key: a webhook, a dashboard or a plugin may put a credential anywhere.
 */
const shownKeys: ReadonlySet<string> = new Set(
  [
    "allowWatchBookmarks container dryRun fieldManager fieldSelector fieldValidation follow force",
    "gracePeriodSeconds includeObject labelSelector limit limitBytes orphanDependents pretty",
    "previous propagationPolicy resourceVersion resourceVersionMatch sendInitialEvents sinceSeconds",
    "sinceTime stderr stdin stdout tailLines timeout timeoutSeconds timestamps tty watch",
  ].flatMap((keys) => keys.split(" ")),
);

/** Returns a text with every query in it, the value of each pair hidden unless its key is one of Kubernetes' own. */
export function withoutQueryValues(text: string): string {
  return text.replace(/([?&;])([^=&;?#\s]*)=([^&;?#\s"']*)/g, (whole, mark: string, key: string) =>
    shownKeys.has(key) ? whole : `${mark}${key}=[redacted]`,
  );
}
