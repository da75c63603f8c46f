/**
 * One Field object for each field that many clients send with the same name and value, such as user-agent. The HPACK
 * tables of all sessions refer to this object. This saves memory for each client, and the encoders of upstream
 * connections find the field without a Map lookup.
 */

import { Lru } from "../../base/lru.ts";
import type { Field } from "../core/field.ts";
import { h2Limits } from "../core/limits.ts";

/**
 * Only these names are shared. Their values repeat and are no secrets, while the header of an unknown name may be a
 * credential. A hostile head of many other fields costs no lookup.
 */
const sharedNames: ReadonlySet<string> = new Set([
  ":authority",
  "accept",
  "accept-encoding",
  "content-type",
  "user-agent",
]);

const byKey = new Lru<string, Field>(h2Limits.sharedFields);

/**
 * Returns an equal field that this or another session has received before; otherwise `field` itself. Only fields whose
 * values repeat and are no secrets are shared.
 */
export function sharedField(field: Field): Field {
  const isShared = sharedNames.has(field.name) && !field.isNeverIndexed;
  if (!isShared || field.size > h2Limits.hpackIndexedBytes) return field;
  const shared = byKey.get(field.key) ?? field;
  // `set` also makes the entry the newest.
  byKey.set(field.key, shared);
  return shared;
}
