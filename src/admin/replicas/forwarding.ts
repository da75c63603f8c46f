/**
 * Forwards requests to a replica of the list: `/api/v1/replicas/NAME/watches` here is `/api/v1/watches` there. A
 * forwarded request has the caller's own token and no other privilege. Its path is one of the API's own table, which
 * has no forwarding in it, so a request is forwarded once at most.
 */
import type { IncomingHttpHeaders } from "node:http";
import { Failure } from "../../base/failure.ts";
import { adminLimits } from "../http/limits.ts";
import { failed, jsonReply, type Post, type Posts, type Reply, type Routes } from "../http/reply.ts";
import { replicaLimits } from "./limits.ts";
import type { SendToReplica } from "./replica-client.ts";
import type { ReplicaRow, Replicas } from "./replicas.ts";

export type ForwardingParts = {
  readonly replicas: Pick<Replicas, "rows" | "named" | "targetOf">;
  readonly send: SendToReplica;
  /** The API of this process, whose paths are those that a replica is asked for. */
  readonly api: Routes;
  /** True while the configuration disables operations (admin.readOnly). */
  readonly isReadOnly: () => boolean;
  readonly now: () => number;
};

const apiRoot = "/api/v1/";
const root = `${apiRoot}replicas/`;

/** Header by which a replica knows that a request was forwarded. Such a request is not forwarded again. */
const forwardedHeader = "x-watchkeeper-forwarded-by";

const readOnly = 'The configuration has "admin.readOnly: true": operations are disabled';

/** Operations that may be forwarded: a limit for all replicas must reach all of them. All others stay per replica. */
const forwardedPosts = /^\/api\/v1\/limits(\/[^/]+\/unlimit)?$/;

/** Statuses that are returned as the replica has returned them. */
const passed: ReadonlySet<number> = new Set([200, 400, 401, 403, 404, 409, 413, 415, 422, 503]);

type Place = { readonly name: string; readonly path: string };
type Message = { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body?: string };

export class Forwarding {
  readonly #parts: ForwardingParts;
  #open = 0;

  constructor(parts: ForwardingParts) {
    this.#parts = parts;
  }

  readonly routes: Routes = (path) => {
    const place = placeIn(path);
    if (place === undefined) return undefined;
    if (place.path.startsWith(root) || this.#parts.api(place.path) === undefined) return undefined;
    return (query, headers = {}) => {
      const target = query === "" ? place.path : `${place.path}?${new URLSearchParams(query).toString()}`;
      return this.#forward(place.name, { path: target, headers });
    };
  };

  readonly posts: Posts = (path): Post | undefined => {
    const place = placeIn(path);
    if (place === undefined || !forwardedPosts.test(place.path)) return undefined;
    return ({ by, body, headers = {} }) => {
      if (this.#parts.isReadOnly()) return failed(403, readOnly);
      const operator = { "x-watchkeeper-operator": nameOf(by) };
      const message = { path: place.path, headers: { ...headers, ...operator } };
      return this.#forward(place.name, { ...message, body: JSON.stringify(body) });
    };
  };

  async #forward(name: string, message: Message): Promise<Reply> {
    const { replicas } = this.#parts;
    if (message.headers[forwardedHeader] !== undefined)
      return failed(508, "This request was forwarded already");
    const row = replicas.named(name);
    if (row === undefined)
      return failed(404, `There is no replica ${shown(name)}: ${namesOf(replicas.rows)}`);
    // Answered here, the request would need no permission for the path that it asks for.
    if (row.isSelf) return redirectTo(message.path);
    const target = replicas.targetOf(row);
    // A caller's token goes only to an address that has just answered as a replica.
    if (row.state !== "live" || target === undefined) return failed(502, this.#whySilent(row));
    if (this.#open >= replicaLimits.forwardsAtOnce)
      return failed(503, "Too many requests are being forwarded");
    this.#open += 1;
    const { forwardMs: timeoutMs, forwardBytes: mostBytes } = replicaLimits;
    const { path, body } = message;
    const headers = this.#headersOf(message);
    const request = { path, headers, timeoutMs, mostBytes, ...(body === undefined ? {} : { body }) };
    const outcome = await this.#parts.send(target, request).finally(() => {
      this.#open -= 1;
    });
    if (outcome instanceof Failure)
      return failed(502, `Replica ${row.name} does not answer: ${outcome.message}`);
    const { status, text } = outcome;
    if (!passed.has(status)) return failed(502, `Replica ${row.name} has answered ${status}`);
    return { status, type: "application/json; charset=utf-8", text };
  }

  /** Of the caller's header fields, only the token is forwarded, and the name of the operator. */
  #headersOf({ headers, body }: Message): Record<string, string> {
    const { authorization, "x-watchkeeper-operator": operator } = headers;
    const by = this.#parts.replicas.rows.find(({ isSelf }) => isSelf)?.facts?.id ?? "";
    return {
      accept: "application/json",
      [forwardedHeader]: by,
      ...(authorization === undefined ? {} : { authorization }),
      ...(body === undefined
        ? {}
        : { "content-type": "application/json", "x-watchkeeper-operator": String(operator) }),
    };
  }

  #whySilent({ name, state, answeredAt, lastError }: ReplicaRow): string {
    const seconds = Math.round((this.#parts.now() - answeredAt) / 1000);
    const since = answeredAt < 0 ? "has not answered yet" : `has not answered for ${seconds} s`;
    const reason = lastError === "" ? "" : `: ${lastError}`;
    return `Replica ${name} is ${state}: it ${since}${reason}`;
  }
}

/** Returns the name of the replica in a path, and the path there. An ID is encoded anew, so that it stays one segment. */
function placeIn(path: string): Place | undefined {
  if (!path.startsWith(root)) return undefined;
  const [name = "", ...rest] = path.slice(root.length).split("/");
  if (name === "" || rest.length === 0) return undefined;
  try {
    const segments = rest.map((segment) => encodeURIComponent(decodeURIComponent(segment)));
    if (segments.some((segment) => segment === "." || segment === "..")) return undefined;
    return { name: decodeURIComponent(name), path: `${apiRoot}${segments.join("/")}` };
  } catch {
    return undefined;
  }
}

/** Returns an operator's name as a header field: printable ASCII of limited length. */
function nameOf(by: string): string {
  return by.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, adminLimits.operatorChars);
}

function redirectTo(location: string): Reply {
  return { ...jsonReply(307, { kind: "Redirect", location }), location };
}

function namesOf(rows: readonly ReplicaRow[]): string {
  return `there is ${rows.map(({ name }) => name).join(", ")}`;
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 64));
}
