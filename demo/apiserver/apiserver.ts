/**
 * The embedded apiserver. It opens no socket and takes the time from a Clock, so that the demo, the tests and the
 * simulation can use it. Several apiservers can share a Store.
 */
import type { Clock } from "../../src/base/clock.ts";
import { type Form, formOf, offered, renderList, renderObject } from "../objects/form.ts";
import type { JsonMap } from "../objects/json.ts";
import { type Target, targetOf } from "../objects/resources.ts";
import {
  internalError,
  methodNotAllowed,
  noSuchPath,
  notAcceptable,
  Refusal,
  tooLarge,
} from "../objects/status.ts";
import type { Source, Store } from "../objects/store.ts";
import { type Answer, type Ask, bodyBytes } from "./ask.ts";
import { documentAt } from "./discovery.ts";
import { Rest } from "./rest.ts";
import { isWatch, type WatchRequest, watchRequestOf } from "./watch-request.ts";
import { type Encode, encodeJson, WatchStream } from "./watch-stream.ts";

const json = "application/json";
/**
 * A watch is ended when more than this many bytes wait for its client. A real apiserver ends a watch whose client is
 * about one second behind.
 */
export const watchQueueBytes = 4 * 1024 * 1024;
/** Default of `--min-request-timeout` in ms. A watch without timeoutSeconds lasts this long, or up to twice as long. */
const watchFloorMs = 1_800_000;

type ApiserverOptions = {
  readonly store: Store;
  /** This apiserver's cache, which may lag behind the store; default: the store itself. */
  readonly cache?: Source;
  /** Resources whose watches bypass the cache, as those of `events` do in a real apiserver; default: none. */
  readonly uncached?: ReadonlySet<string>;
  /** Returns the encoding of events for an Accept header; undefined: JSON. */
  readonly encodingFor?: (accept: string) => Encoding | undefined;
  readonly mostWatchQueueBytes?: number;
  readonly clock: Clock;
  /** Prefix of the audit ids. It shows which apiserver has answered. */
  readonly name: string;
};

export type Encoding = { readonly contentType: string; readonly encode: Encode };

const inJson: Encoding = { contentType: json, encode: encodeJson };

type WholeReply = { readonly code: number; readonly contentType: string; readonly body: Buffer };

export class Apiserver {
  readonly #options: ApiserverOptions;
  readonly #rest: Rest;
  readonly #watches = new Set<WatchStream>();
  #askedCount = 0;

  constructor(options: ApiserverOptions) {
    this.#options = options;
    this.#rest = new Rest(options.store, options.clock, options.cache);
  }

  get askedCount(): number {
    return this.#askedCount;
  }

  get watchCount(): number {
    return this.#watches.size;
  }

  handle(ask: Ask, answer: Answer): void {
    this.#askedCount += 1;
    // If the client sent an audit id, it is kept, as in a real apiserver, so that the logs of all processes show the
    // same id.
    const auditId = fieldOf(ask, "audit-id") || `${this.#options.name}-${this.#askedCount}`;
    const reply = this.#contained(ask, answer, auditId);
    if (reply === undefined) return;
    const { code, contentType, body } = reply;
    answer.head(code, [...headOf(contentType, auditId), ["content-length", String(body.length)]]);
    if (ask.method !== "HEAD" && body.length > 0) answer.write(body);
    answer.end();
  }

  /** Ends every watch cleanly, after a complete event, as a real apiserver does when it shuts down. */
  endWatches(): void {
    for (const watch of this.#watches) watch.end();
  }

  #contained(ask: Ask, answer: Answer, auditId: string): WholeReply | undefined {
    try {
      return this.#reply(ask, answer, auditId);
    } catch (reason) {
      // An exception, for example because JSON nests too deep for the stack, fails only this request.
      return refused(internalError(String(reason)));
    }
  }

  /** Returns the response; undefined: the response is a watch stream, which this method has started. */
  #reply(ask: Ask, answer: Answer, auditId: string): WholeReply | undefined {
    const [path = "", ...rest] = ask.path.split("?");
    const plain = plainReply(ask, path);
    if (plain !== undefined) return plain;
    const target = targetOf(segmentsOf(path));
    if (target === undefined || target.subresource !== undefined) return refused(noSuchPath());
    const form = formOf(fieldOf(ask, "accept"));
    if (form === undefined) return refused(notAcceptable(offered));
    const query = new URLSearchParams(rest.join("?"));
    if (!isWatch(ask.method, target, query)) return this.#objects(ask, { target, query, form });
    const request = watchRequestOf(target, query);
    if (request instanceof Refusal) return refused(request);
    const { contentType, encode } = this.#options.encodingFor?.(fieldOf(ask, "accept")) ?? inJson;
    answer.head(200, headOf(contentType, auditId));
    this.#watch(request, { form, encode }, answer);
    return undefined;
  }

  #objects(ask: Ask, asked: { target: Target; query: URLSearchParams; form: Form }): WholeReply {
    const { target, query, form } = asked;
    if (ask.body.length > bodyBytes) return refused(tooLarge(bodyBytes));
    const [contentType = ""] = fieldOf(ask, "content-type").split(";");
    const result = this.#rest.answer({ method: ask.method, target, query, contentType, body: ask.body });
    if (result instanceof Refusal) return refused(result);
    const rendering = { resource: target.resource, form, wallMs: this.#options.clock.wall() };
    switch (result.kind) {
      case "status":
        return jsonReply(200, result.status);
      case "list":
        return jsonReply(200, renderList(result.objects, result.version, rendering));
      case "object":
        return jsonReply(result.code, renderObject(result.object, rendering));
      default:
        return result satisfies never;
    }
  }

  #watch(request: WatchRequest, written: { form: Form; encode: Encode }, answer: Answer): void {
    const { store, clock, cache = store, uncached } = this.#options;
    const isUncached = uncached?.has(request.target.resource.plural) === true;
    // A real apiserver chooses a random duration. Here, the duration is from the same range, but does not differ
    // between runs.
    const pickedMs = watchFloorMs * (1 + ((this.#askedCount * 0.618) % 1));
    const timeoutMs = request.timeoutSeconds === undefined ? pickedMs : request.timeoutSeconds * 1_000;
    const watch = new WatchStream(
      {
        request,
        ...written,
        answer,
        source: isUncached ? store : cache,
        hasPeriodicBookmarks: !isUncached,
        mostQueuedBytes: isUncached
          ? Number.POSITIVE_INFINITY
          : (this.#options.mostWatchQueueBytes ?? watchQueueBytes),
        clock,
        timeoutMs,
      },
      () => this.#watches.delete(watch),
    );
    this.#watches.add(watch);
    answer.onGone(() => watch.stop());
    watch.start();
  }
}

const reviewPath = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/**
 * Returns the answer to a SelfSubjectReview. These apiservers verify no credential: a client that asserts an identity,
 * in X-Remote-* or Impersonate-*, has it, and any other client is anonymous.
 */
function reviewOf(ask: Ask): JsonMap {
  const valuesOf = (...names: string[]): string[] =>
    ask.fields.filter(([key]) => names.includes(key)).map(([, value]) => value);
  const [username = ""] = valuesOf("impersonate-user", "x-remote-user");
  const [uid] = valuesOf("impersonate-uid", "x-remote-uid");
  const isAnonymous = username === "";
  const groups = isAnonymous ? [] : valuesOf("impersonate-group", "x-remote-group");
  const userInfo = {
    username: isAnonymous ? "system:anonymous" : username,
    ...(uid === undefined || isAnonymous ? {} : { uid }),
    groups: [...groups, isAnonymous ? "system:unauthenticated" : "system:authenticated"],
  };
  const metadata = { creationTimestamp: null };
  return {
    kind: "SelfSubjectReview",
    apiVersion: "authentication.k8s.io/v1",
    metadata,
    status: { userInfo },
  };
}

function plainReply(ask: Ask, path: string): WholeReply | undefined {
  const { method } = ask;
  if (path === reviewPath && method === "POST") return jsonReply(201, reviewOf(ask));
  const isHealth = /^\/(livez|readyz|healthz)(\/|$)/.test(path);
  const document = isHealth ? undefined : documentAt(path);
  if (!isHealth && document === undefined) return undefined;
  if (method !== "GET" && method !== "HEAD") return refused(methodNotAllowed());
  if (document !== undefined) return jsonReply(200, document);
  return { code: 200, contentType: "text/plain; charset=utf-8", body: Buffer.from("ok") };
}

/** Returns the segments of a path. Each is decoded after the split, so that an escaped slash stays in its segment. */
function segmentsOf(path: string): string[] {
  try {
    return path
      .split("/")
      .slice(1)
      .filter((segment) => segment !== "")
      .map(decodeURIComponent);
  } catch {
    return []; // The escape is invalid. An empty path leads to 404: there is no such object.
  }
}

function fieldOf(ask: Ask, name: string): string {
  return ask.fields.find(([key]) => key === name)?.[1] ?? "";
}

function headOf(contentType: string, auditId: string): [string, string][] {
  return [
    ["audit-id", auditId],
    ["cache-control", "no-cache, private"],
    ["content-type", contentType],
  ];
}

function jsonReply(code: number, body: JsonMap): WholeReply {
  return { code, contentType: json, body: Buffer.from(`${JSON.stringify(body)}\n`) };
}

function refused({ code, status }: Refusal): WholeReply {
  return jsonReply(code, status);
}
