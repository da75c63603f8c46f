/**
 * Forwards requests to other replicas: `/api/v1/replicas/NAME/watches` becomes `/api/v1/watches` at the replica NAME. A
 * forwarded request has the caller's own token and no other privilege. Only paths of the API's own route table are
 * forwarded. That table has no forwarding paths, so a request is forwarded at most once.
 */
import type { IncomingHttpHeaders } from "node:http";
import { Failure } from "../../base/failure.ts";
import { adminLimits } from "../../ops/admin/http/limits.ts";
import {
  failed,
  jsonReply,
  type Post,
  type Posted,
  type Posts,
  type Reply,
  type Routes,
} from "../../ops/admin/http/reply.ts";
import { replicaLimits } from "./limits.ts";
import type { SendToReplica } from "./replica-client.ts";
import type { ReplicaRow, Replicas, ReplicaTarget } from "./replicas.ts";

export type ForwardingParts = {
  readonly replicas: Pick<Replicas, "rows" | "named" | "targetOf">;
  readonly send: SendToReplica;
  /** The routes of this process's API. Only their paths are forwarded. */
  readonly api: Routes;
  /** Returns the response that refuses an operation while admin.readOnly disables operations; undefined: allowed. */
  readonly refusal: (target: string, posted: Posted) => Reply | undefined;
  readonly now: () => number;
};

const apiRoot = "/api/v1/";
const root = `${apiRoot}replicas/`;

/**
 * Paths of the operations that may be forwarded: those that set or end a limit, because a limit for all replicas must
 * be set at each of them. Every other operation affects only the replica that receives it.
 */
export const forwardedPosts = /^\/api\/v1\/limits(\/[^/]+\/unlimit)?$/;

/** Statuses of a replica's response that are passed on to the caller. Any other status becomes 502. */
const passed: ReadonlySet<number> = new Set([200, 400, 401, 403, 404, 409, 413, 415, 422, 429, 503]);

type Destination = { readonly name: string; readonly path: string };
type Message = { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body?: string };

export class Forwarding {
  readonly #parts: ForwardingParts;
  /** Number of forwarded requests without a response, by the address of the replica. */
  readonly #open = new Map<string, number>();
  /** Number of bytes received so far of all responses that are not complete yet. */
  #bytes = 0;

  constructor(parts: ForwardingParts) {
    this.#parts = parts;
  }

  readonly routes: Routes = (path) => {
    const destination = destinationIn(path);
    if (destination === undefined) return undefined;
    if (destination.path.startsWith(root) || this.#parts.api(destination.path) === undefined)
      return undefined;
    return (query, headers = {}) => {
      const target =
        query === "" ? destination.path : `${destination.path}?${new URLSearchParams(query).toString()}`;
      return this.#forward(destination.name, { path: target, headers });
    };
  };

  readonly posts: Posts = (path): Post | undefined => {
    const destination = destinationIn(path);
    if (destination === undefined || !forwardedPosts.test(destination.path)) return undefined;
    return (posted) => {
      const refusal = this.#parts.refusal(path.slice(apiRoot.length), posted);
      if (refusal !== undefined) return refusal;
      const { by, body, headers = {} } = posted;
      const operator = { "x-watchkeeper-operator": nameOf(by) };
      const message = { path: destination.path, headers: { ...headers, ...operator } };
      return this.#forward(destination.name, { ...message, body: JSON.stringify(body) });
    };
  };

  async #forward(name: string, message: Message): Promise<Reply> {
    const { replicas } = this.#parts;
    const row = replicas.named(name);
    if (row === undefined)
      return failed(404, `There is no replica ${shown(name)}: ${namesOf(replicas.rows)}`);
    // A request for this process itself is redirected and not answered here, because the caller was authorized for the
    // forwarding path, and not for `message.path`.
    if (row.isSelf) return redirectTo(message.path);
    const target = replicas.targetOf(row);
    // The caller's token is sent only to an address that has recently answered as a replica.
    if (row.state !== "live" || target === undefined) return failed(502, this.#whySilent(row));
    const open = this.#open.get(row.address) ?? 0;
    if (open >= replicaLimits.forwardsAtOnce)
      return failed(503, `Too many requests are being forwarded to replica ${row.name}`);
    this.#open.set(row.address, open + 1);
    const outcome = await this.#send(target, message).finally(() => this.#closed(row.address));
    if (outcome instanceof Failure)
      return outcome.code === "overload"
        ? failed(503, outcome.message)
        : failed(502, `Replica ${row.name} does not answer: ${outcome.message}`);
    const { status, bytes: text } = outcome;
    if (!passed.has(status)) return failed(502, `Replica ${row.name} has answered ${status}`);
    return { status, type: "application/json; charset=utf-8", text };
  }

  #closed(address: string): void {
    const open = (this.#open.get(address) ?? 1) - 1;
    if (open === 0) this.#open.delete(address);
    else this.#open.set(address, open);
  }

  async #send(target: ReplicaTarget, { path, headers, body }: Message): ReturnType<SendToReplica> {
    let counted = 0;
    const count = (bytes: number): Failure | undefined => {
      counted += bytes;
      this.#bytes += bytes;
      return this.#bytes <= replicaLimits.forwardBytesAtOnce
        ? undefined
        : new Failure("overload", "proxy", "Too many responses are being forwarded");
    };
    const { forwardMs: timeoutMs, forwardBytes: mostBytes } = replicaLimits;
    const request = { path, headers: headersOf(headers, body), timeoutMs, mostBytes, count };
    const sent = this.#parts.send(target, body === undefined ? request : { ...request, body });
    return sent.finally(() => {
      this.#bytes -= counted;
    });
  }

  #whySilent({ name, state, answeredAt, lastError }: ReplicaRow): string {
    const seconds = Math.round((this.#parts.now() - answeredAt) / 1000);
    const since = answeredAt < 0 ? "has not answered yet" : `has not answered for ${seconds} s`;
    const reason = lastError === "" ? "" : `: ${lastError}`;
    return `Replica ${name} is ${state}: it ${since}${reason}`;
  }
}

/**
 * Returns the header fields of the forwarded request. Of the caller's fields, only the token and the operator's name
 * are kept.
 */
function headersOf(
  { authorization, "x-watchkeeper-operator": operator }: IncomingHttpHeaders,
  body: string | undefined,
): Record<string, string> {
  return {
    accept: "application/json",
    ...(authorization === undefined ? {} : { authorization }),
    ...(body === undefined
      ? {}
      : { "content-type": "application/json", "x-watchkeeper-operator": String(operator) }),
  };
}

/**
 * Returns the replica's name and the path at that replica. Path segments are percent-encoded again, so that an ID with
 * a slash stays one segment.
 */
function destinationIn(path: string): Destination | undefined {
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

/** Returns an operator's name as the value of a header field: printable ASCII of limited length. */
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
