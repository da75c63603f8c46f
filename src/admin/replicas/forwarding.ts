/**
 * Forwards requests to a replica of the list: `/api/v1/replicas/NAME/watches` here is `/api/v1/watches` there. A
 * forwarded request has the caller's own token and no other privilege. Its path is one of the API's own table, which
 * has no forwarding in it, so a request is forwarded once at most.
 */
import type { IncomingHttpHeaders } from "node:http";
import { Failure } from "../../base/failure.ts";
import { adminLimits } from "../http/limits.ts";
import {
  failed,
  jsonReply,
  type Post,
  type Posted,
  type Posts,
  type Reply,
  type Routes,
} from "../http/reply.ts";
import { replicaLimits } from "./limits.ts";
import type { SendToReplica } from "./replica-client.ts";
import type { ReplicaRow, Replicas, ReplicaTarget } from "./replicas.ts";

export type ForwardingParts = {
  readonly replicas: Pick<Replicas, "rows" | "named" | "targetOf">;
  readonly send: SendToReplica;
  /** The API of this process, whose paths are those that a replica is asked for. */
  readonly api: Routes;
  /** Refuses an operation while the configuration disables operations (admin.readOnly). */
  readonly refusal: (target: string, posted: Posted) => Reply | undefined;
  readonly now: () => number;
};

const apiRoot = "/api/v1/";
const root = `${apiRoot}replicas/`;

/** Operations that may be forwarded: a limit for all replicas must reach all of them. All others stay per replica. */
export const forwardedPosts = /^\/api\/v1\/limits(\/[^/]+\/unlimit)?$/;

/** Statuses that are returned as the replica has returned them. */
const passed: ReadonlySet<number> = new Set([200, 400, 401, 403, 404, 409, 413, 415, 422, 429, 503]);

type Destination = { readonly name: string; readonly path: string };
type Message = { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body?: string };

export class Forwarding {
  readonly #parts: ForwardingParts;
  /** Number of requests under way, by the address of the replica. */
  readonly #open = new Map<string, number>();
  /** Bytes of responses that have arrived in part. */
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
    // A response from here would need no permission for the path that the request is for.
    if (row.isSelf) return redirectTo(message.path);
    const target = replicas.targetOf(row);
    // A caller's token goes only to an address that has just answered as a replica.
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
    const count = (bytes: number): boolean => {
      counted += bytes;
      this.#bytes += bytes;
      return this.#bytes <= replicaLimits.forwardBytesAtOnce;
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

/** Of the caller's header fields, only the token is forwarded, and the name of the operator. */
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

/** Returns the name of the replica in a path, and the path there. An ID is encoded anew, so that it stays one segment. */
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
