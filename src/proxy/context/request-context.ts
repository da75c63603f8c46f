/** What serve knows of a request by the time that it is sent, and what may be done with it because of that. */

import { limits } from "../../base/limits.ts";
import type { Field } from "../../h2/core/field.ts";
import type { Kind } from "../../kube/request-info.ts";
import type { Caller } from "../../ledger/caller.ts";
import type { Vouched } from "../identity/client-identity.ts";
import type { Client } from "./client.ts";

export type RequestContext = {
  readonly client: Client;
  readonly caller: Caller;
  /** When its head was read, a clock reading. */
  readonly at: number;
  /** Of a watch, as `resourceKey` has it; "" of anything else. */
  readonly resource: string;
  readonly method: string;
  readonly kind: Kind;
  readonly verb: string;
  /** One object of the apiserver's own, or a part of it, is read by its name. */
  readonly isObjectRead: boolean;
  /** The apiserver answers from its own storage: how long that takes says something about its health. */
  readonly isOwn: boolean;
  readonly fields: readonly Field[];
  readonly auditId: string;
  /** No body follows the head. */
  readonly isBodiless: boolean;
  /** For whom our own word goes up, under our own credential. */
  readonly vouched?: Vouched | undefined;
};

/** What counts as waiting for as long as its request lives: a head that is longer than usual, all of it. */
export function longHeadBytes(fields: readonly Field[]): number {
  let bytes = 0;
  for (const { size } of fields) bytes += size;
  return bytes > limits.usualHeadBytes ? bytes : 0;
}

/** Methods whose repetition changes nothing (RFC 9110 §9.2.1). */
const safeMethods = new Set(["GET", "HEAD"]);

/**
 * May it be asked twice, of two backends even, before anything is answered (watch.md §10)? Never a long-running one:
 * a GET of exec or of the proxy subresource acts.
 */
export function isRepeatable({ method, kind, isBodiless }: RequestContext): boolean {
  return isBodiless && kind !== "long-running" && safeMethods.has(method);
}

/** May no cache answer it? With a version, one may (k8s.io/apiserver, storage/cacher); a GET without one asks etcd. */
export function isFreshRead({ isObjectRead, isBodiless, fields }: RequestContext): boolean {
  if (!isObjectRead || !isBodiless) return false;
  const path = fields.find(({ name }) => name === ":path")?.value ?? "";
  return !path.includes("resourceVersion=");
}
