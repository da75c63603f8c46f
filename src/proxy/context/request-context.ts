/** What is known of a request when it is sent, and what may be done with it because of that. */

import { clipped } from "../../base/detach.ts";
import { limits } from "../../base/limits.ts";
import type { Field } from "../../h2/core/field.ts";
import type { Kind } from "../../kube/request-info.ts";
import type { Caller } from "../../ledger/caller.ts";
import type { Asserted } from "../identity/client-identity.ts";
import type { Client } from "./client.ts";

export type RequestContext = {
  readonly client: Client;
  readonly caller: Caller;
  /** When its head was read, a clock reading. */
  readonly at: number;
  /** Of a watch: its `resourceKey`; else "". */
  readonly resource: string;
  readonly method: string;
  readonly kind: Kind;
  readonly verb: string;
  /** True if it reads one object of the apiserver's own, or a part of it, by name. */
  readonly isObjectRead: boolean;
  /** True if the apiserver answers from its own storage, so that the time it takes is evidence of its health. */
  readonly isOwn: boolean;
  readonly fields: readonly Field[];
  readonly auditId: string;
  /** True if no body follows the head. */
  readonly isBodiless: boolean;
  /** The identity that the proxy asserts with its own credential. */
  readonly asserted?: Asserted | undefined;
};

/** Bytes that count as buffered for the life of the request: the whole head if it is longer than usual, else 0. */
export function longHeadBytes(fields: readonly Field[]): number {
  let bytes = 0;
  for (const { size } of fields) bytes += size;
  return bytes > limits.usualHeadBytes ? bytes : 0;
}

/** Methods whose repetition changes nothing (RFC 9110 §9.2.1). */
const safeMethods = new Set(["GET", "HEAD"]);

/**
 * True if it may be sent twice, even to two backends, before anything is answered (watch.md §10). Never a long-running
 * one: a GET of exec or of the proxy subresource acts.
 */
export function isRepeatable({ method, kind, isBodiless }: RequestContext): boolean {
  return isBodiless && kind !== "long-running" && safeMethods.has(method);
}

/** True if no cache may answer it: a GET without a version is read from etcd (k8s.io/apiserver, storage/cacher). */
export function isFreshRead({ isObjectRead, isBodiless, fields }: RequestContext): boolean {
  if (!isObjectRead || !isBodiless) return false;
  const path = fields.find(({ name }) => name === ":path")?.value ?? "";
  return !path.includes("resourceVersion=");
}

/** Identifies a client across sockets, tokens and restarts: its address and User-Agent, separated by a space. */
export function clientKey(client: Pick<Client, "address">, fields: readonly Field[]): string {
  return `${client.address} ${userAgentOf(fields)}`;
}

/** The User-Agent, at most `limits.userAgentChars` long; "" if the request has none. */
export function userAgentOf(fields: readonly Field[]): string {
  const field = fields.find(({ name }) => name === "user-agent");
  return clipped(field?.value ?? "", limits.userAgentChars);
}
