/**
 * When a bearer ends to be valid, as far as it says so itself. Asked before it is sent a second time, by us: the 401
 * that a token of an hour ago earns would make the apiserver let a whole upstream connection go (watch.md §8, W7).
 */
import { type Field, role } from "../../h2/core/field.ts";

/** Of fields that were read before: a watch is looked at every five seconds, and to read 64 KiB of JSON takes 0.3 ms. */
const known = new WeakMap<Field, { readonly end: number | undefined }>();

/** Milliseconds since 1970; undefined when there is no bearer, or one that names no end. Nothing is verified. */
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

/** When an Authorization field's JWT ends by its own word, in ms since 1970; undefined for anything else. Nothing is verified. */
export function bearerEndsAt(value: string): number | undefined {
  const payload = payloadIn(value);
  if (payload === "") return undefined;
  const claims = parsed(Buffer.from(payload, "base64url").toString());
  if (typeof claims !== "object" || claims === null || !("exp" in claims)) return undefined;
  return typeof claims.exp === "number" ? claims.exp * 1000 : undefined;
}

/** Of a JWT behind "Bearer"; "" for anything else. No regular expression: `value` is a client's, and has up to 64 KiB. */
function payloadIn(value: string): string {
  if (value.slice(0, 7).toLowerCase() !== "bearer ") return "";
  const parts = value.slice(7).split(".", 4);
  return parts.length === 3 && parts.every((part) => part.trim() !== "") ? (parts[1] ?? "") : "";
}

/** Is the certificate over for which we vouch, or a bearer by its own word? `wallMs`: the present time, since 1970. */
export function isCredentialOver({ fields, vouched }: Asked, wallMs: number): boolean {
  const end = vouched === undefined ? bearerExpiresAt(fields) : vouched.notAfter;
  return (end ?? Number.POSITIVE_INFINITY) <= wallMs;
}

type Asked = {
  readonly fields: readonly Field[];
  readonly vouched?: { readonly notAfter: number } | undefined;
};

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Three words with dots between them that are no JWT: whoever takes it knows until when.
    return undefined;
  }
}
