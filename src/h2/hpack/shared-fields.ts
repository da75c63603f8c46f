/**
 * One Field object for each field that many clients send with the same name and value, such as user-agent. The HPACK
 * tables of all sessions refer to this object. This saves memory for each client, and the encoders of upstream
 * connections find the field without a Map lookup.
 */

import { Lru } from "../../base/lru.ts";
import type { Field } from "../core/field.ts";
import { h2Limits } from "../core/limits.ts";
import { comesOnce } from "./hpack-encoder.ts";

const byKey = new Lru<string, Field>(h2Limits.sharedFields);

/**
 * Returns an equal field that this or another session has received before; otherwise `field` itself. Secrets, and fields
 * that seldom repeat, are not shared.
 */
export function sharedField(field: Field): Field {
  if (field.isNeverIndexed || comesOnce(field)) return field;
  const known = byKey.get(field.key);
  if (known !== undefined) return known;
  byKey.set(field.key, field);
  return field;
}
