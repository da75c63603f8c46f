/** A request, its client, and what the proxy may do with the request. */

import { clipped } from "../../base/detach.ts";
import { limits } from "../../base/limits.ts";
import { Field, role } from "../../h2/core/field.ts";
import { headBytes } from "../../h2/core/fields.ts";
import type { Kind } from "../../kube/request-info.ts";
import type { Caller } from "../../ops/ledger/caller.ts";
import type { Asserted } from "../identity/asserted-identity.ts";
import type { Client } from "./client.ts";

export type RequestContext = {
  readonly client: Client;
  readonly caller: Caller;
  /** Clock reading at which the proxy had read the request's head. */
  readonly at: number;
  /** For a watch: group and name of the resource, as `resourceKey` returns them; otherwise "". */
  readonly resource: string;
  readonly method: string;
  readonly kind: Kind;
  readonly verb: string;
  /** True if the request reads one object, or its subresource, by name, and the apiserver itself stores the object. */
  readonly isObjectRead: boolean;
  readonly isLogRead: boolean;
  /** True if the apiserver answers from its own storage, so that its response time shows its health. */
  readonly isOwn: boolean;
  /**
   * The `:path` that is sent to the first backend; "": the request has none. Unlike `WatchContext.target`, it may have
   * parameters that the proxy has added. If a watch continues on another backend, only `fields` has the new `:path`.
   */
  readonly target: string;
  /**
   * The fields for the backend. `shareFields` empties the `:path` and the audit id of an answered watch. `fieldsFor`
   * returns whole fields.
   */
  fields: readonly Field[];
  readonly auditId: string;
  readonly isBodiless: boolean;
  /** The identity that the proxy asserts; undefined: the client's own credential goes upstream. */
  readonly asserted?: Asserted | undefined;
};

/** Returns the bytes of an unusually long head, which count as buffered bytes during the request; otherwise 0. */
export function longHeadBytes(fields: readonly Field[]): number {
  const bytes = headBytes(fields);
  return bytes > limits.usualHeadBytes ? bytes : 0;
}

/** True if the request may be sent again after its stream was lost before the response (watch.md §10). */
export function isSafe(context: RequestContext): boolean {
  return isRepeatable(context) || (context.isLogRead && context.isBodiless);
}

/**
 * True if the request may be sent to two backends at once (watch.md §10). Never true for a long-running request: a GET
 * of exec or of the proxy subresource has side effects, and each copy of a log costs the kubelet a connection.
 */
export function isRepeatable({ method, kind, isBodiless }: RequestContext): boolean {
  return isBodiless && kind !== "long-running" && isSafeMethod(method);
}

/** The safe methods of RFC 9110 §9.2.1 that apiservers serve. */
export function isSafeMethod(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

/**
 * True for a GET of one object without `resourceVersion`, which the apiserver answers from etcd, not from a cache
 * (storage/cacher).
 */
export function isFreshRead({ isObjectRead, isBodiless, target }: RequestContext): boolean {
  return isObjectRead && isBodiless && !target.includes("resourceVersion=");
}

/** Returns the request's path with its query; "": it has none. */
export function targetIn(fields: readonly Field[]): string {
  return fields.find(({ name }) => name === ":path")?.value ?? "";
}

/** Returns a key that stays the same when a client reconnects or restarts: its address, a space, its User-Agent. */
export function clientKey(client: Pick<Client, "address">, fields: readonly Field[]): string {
  return `${client.address} ${userAgentOf(fields)}`;
}

/** Returns the User-Agent, clipped to `limits.userAgentChars`; "": the request has none. */
export function userAgentOf(fields: readonly Field[]): string {
  const field = fields.find(({ name }) => name === "user-agent");
  return clipped(field?.value ?? "", limits.userAgentChars);
}

const noPath = new Field(":path", "");
/** Stands for the proxy's own audit id. No client can send this value (RFC 9113 §8.2.1). */
const noAuditId = new Field("audit-id", "\0");

/**
 * Makes an answered watch share its fields with the other watches of its connection, because 50,000 watches have few
 * different heads. Path and audit id, which always differ, are replaced by placeholders.
 */
export function shareFields(context: RequestContext): void {
  const { client, fields, auditId } = context;
  // A longer head would stay in memory while the connection is idle (A26).
  if (headBytes(fields) > limits.sharedHeadBytes) return;
  const shared = fields.map((field) => {
    if (field.role === role.path) return noPath;
    const isOwn = field.role === role.auditId && field.value === auditId && !field.isNeverIndexed;
    return isOwn ? noAuditId : field;
  });
  context.fields = client.shareWatchFields(shared);
}

/** Returns the request's fields with another `:path`, also if they are shared (`shareFields`). */
export function fieldsFor({ fields, auditId }: RequestContext, path: string): readonly Field[] {
  return fields.map((field) => {
    if (field.role === role.path) return new Field(":path", path);
    return field === noAuditId ? new Field(noAuditId.name, auditId, false, noAuditId) : field;
  });
}
