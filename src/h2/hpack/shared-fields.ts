/**
 * Fields that many clients send with the same name and value, such as user-agent. All sessions then have the same Field
 * object in their HPACK tables. This saves memory for each client, and the encoders of upstream connections find the
 * field without a Map lookup.
 */

import { Lru } from "../../base/lru.ts";
import type { Field } from "../core/field.ts";
import { h2Limits } from "../core/limits.ts";
import { comesOnce } from "./hpack-encoder.ts";

const byKey = new Lru<string, Field>(h2Limits.sharedFields);

/**
 * Returns a field with the same name and value that another session has received, or else `field` itself. Secrets, and
 * fields that do not repeat, are not shared.
 */
export function sharedField(field: Field): Field {
  if (field.isNeverIndexed || comesOnce(field)) return field;
  const known = byKey.get(field.key);
  if (known !== undefined) return known;
  byKey.set(field.key, field);
  return field;
}
