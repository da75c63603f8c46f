/**
 * Reads the expiry of a bearer token from the token itself. The proxy checks the expiry before it sends a client's
 * token again: an expired token gets 401, after which the apiserver would close the whole upstream connection (watch.md
 * §8, W7).
 */
import { isRecord, parseJson } from "../../base/json.ts";
import { type Field, role } from "../../h2/core/field.ts";

/**
 * The expiry of each Authorization field. Cached, because it is checked for each watch every 5 s, and parsing a token
 * of 64 KiB takes 0.3 ms.
 */
const known = new WeakMap<Field, { readonly end: number | undefined }>();

/** Returns the token's expiry in ms since 1970; undefined: there is no token, or it does not state its expiry. */
function bearerExpiresAt(fields: readonly Field[]): number | undefined {
  const field = fields.find((one) => one.role === role.authorization);
  if (field === undefined) return undefined;
  let found = known.get(field);
  if (found === undefined) {
    found = { end: bearerEndsAt(field.value) };
    known.set(field, found);
  }
  return found.end;
}

/** Returns when an Authorization field's JWT expires, in ms since 1970; undefined: the token states no expiry. */
export function bearerEndsAt(value: string): number | undefined {
  const payload = payloadIn(value);
  if (payload === "") return undefined;
  const claims = parseJson(Buffer.from(payload, "base64url").toString());
  const exp = isRecord(claims) ? claims["exp"] : undefined;
  return typeof exp === "number" ? exp * 1000 : undefined;
}

/**
 * Returns the second part of a JWT in `Bearer <header>.<payload>.<signature>`; "" if there is none. Uses no regular
 * expression, because a client can send 64 KiB.
 */
function payloadIn(value: string): string {
  if (value.slice(0, 7).toLowerCase() !== "bearer ") return "";
  const parts = value.slice(7).split(".", 4);
  return parts.length === 3 && parts.every((part) => part.trim() !== "") ? (parts[1] ?? "") : "";
}

/**
 * True if the client's credential has expired: the certificate whose identity the proxy asserts, or else the bearer
 * token. `wallMs`: ms since 1970.
 */
export function isCredentialOver({ fields, asserted }: Identified, wallMs: number): boolean {
  const end = asserted === undefined ? bearerExpiresAt(fields) : asserted.notAfter;
  return (end ?? Number.POSITIVE_INFINITY) <= wallMs;
}

type Identified = {
  readonly fields: readonly Field[];
  readonly asserted?: { readonly notAfter: number } | undefined;
};
