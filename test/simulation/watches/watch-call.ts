/** One watch request as its client sees it: response head, events, and end. Each event is checked when it arrives. */
import type { Field } from "../../../src/h2/core/field.ts";
import { errorCode, lost } from "../../../src/h2/core/protocol-error.ts";
import type { StreamListener } from "../../../src/h2/core/stream-writer.ts";
import type { Stream } from "../../../src/h2/session/stream.ts";
import type { Caller } from "./caller.ts";
import { EventReader, protobufStream, type WatchEvent } from "./events.ts";
import { type Beginning, Follower, type Interest, type Truth } from "./truth.ts";

export type WatchOrder = {
  readonly interest: Interest;
  readonly beginning: Beginning;
  /** The oldest version that the initial events may have. "" requests the most recent one. */
  readonly atLeast?: string;
  readonly wantsBookmarks: boolean;
  readonly isProtobuf: boolean;
  readonly timeoutSeconds: number | undefined;
};

export type WatchEnd =
  /** END_STREAM. */
  | { readonly kind: "end" }
  /** The connection was lost. */
  | { readonly kind: "lost" }
  | { readonly kind: "reset"; readonly code: number }
  /** An ERROR event. */
  | { readonly kind: "error"; readonly code: number }
  /** Any status other than 200. */
  | { readonly kind: "refused"; readonly status: number; readonly retryAfterMs: number | undefined };

export type WatchCallOwner = {
  event(event: WatchEvent): void;
  over(call: WatchCall, end: WatchEnd): void;
};

/** What all clients of a run share. */
export type Company = {
  readonly truth: Truth;
  /** Every watch by its audit id. The requests that reach backends are compared with it. */
  readonly calls: Map<string, WatchCall>;
  /** Called at the end of each watch, before its client reacts. */
  judgeEnd(call: WatchCall, end: WatchEnd): void;
  /** Called with the version of each event except bookmarks and errors. */
  judgeEvent(call: WatchCall, version: number): void;
};

export class WatchCall implements StreamListener {
  readonly order: WatchOrder;
  readonly auditId: string;
  readonly caller: Caller;
  readonly path: string;
  readonly accept: string;
  readonly openedAt: number;
  answeredAt = 0;
  readonly follower: Follower;
  readonly #company: Company;
  readonly #owner: WatchCallOwner;
  readonly #stream: Stream;
  /** The time from which events are new changes and no initial events. -1 before. */
  liveSince = -1;
  #reader: EventReader | undefined;
  #status = 0;
  #retryAfterMs: number | undefined;
  /** Number of events since the request, or since the end of the initial events. */
  events = 0;
  /** The beginning of the time that client-go measures to detect a very short watch. */
  countedSince: number;
  isOver = false;
  /** True while the client grants no flow-control credit. */
  isStalled = false;
  #stalledBytes = 0;
  /** Until this time the proxy may end the watch because its client is slow. */
  stalledUntil = Number.NEGATIVE_INFINITY;

  constructor(caller: Caller, company: Company, order: WatchOrder, owner: WatchCallOwner) {
    const { world } = caller.findings;
    this.order = order;
    this.caller = caller;
    this.#company = company;
    this.#owner = owner;
    this.auditId = caller.nextId();
    this.path = pathOf(order);
    this.accept = order.isProtobuf ? `${protobufStream},application/json` : "application/json";
    this.openedAt = world.now();
    this.countedSince = this.openedAt;
    const parts = {
      truth: company.truth,
      findings: caller.findings,
      wantsBookmarks: order.wantsBookmarks,
      name: this.auditId,
    };
    this.follower = new Follower(parts, order.interest, order.beginning);
    company.calls.set(this.auditId, this);
    this.#stream = caller.ask(
      { method: "GET", path: this.path, accept: this.accept, auditId: this.auditId },
      this,
    );
  }

  get deadline(): number | undefined {
    const { timeoutSeconds } = this.order;
    return timeoutSeconds === undefined ? undefined : this.openedAt + timeoutSeconds * 1_000;
  }

  get isAnswered(): boolean {
    return this.#status === 200;
  }

  cancel(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#stream.reset(errorCode.CANCEL);
  }

  /** Stops the reader: received bytes grant no flow-control credit. */
  stall(): void {
    this.isStalled = true;
    this.stalledUntil = Number.POSITIVE_INFINITY;
  }

  unstall(): void {
    this.isStalled = false;
    // The proxy may still end the watch shortly afterwards because of the bytes that were queued.
    this.stalledUntil = this.caller.findings.world.now() + 5_000;
    this.#stream.grant(this.#stalledBytes);
    this.#stalledBytes = 0;
  }

  headers(fields: Field[], end: boolean): void {
    if (this.isOver) return;
    const value = (wanted: string): string | undefined => fields.find(({ name }) => name === wanted)?.value;
    const status = Number(value(":status") ?? 0);
    if (this.#status !== 0 || status < 200) return;
    this.#status = status;
    this.answeredAt = this.caller.findings.world.now();
    const retryAfter = value("retry-after");
    this.#retryAfterMs = retryAfter === undefined ? undefined : Number(retryAfter) * 1_000;
    if (status === 200)
      this.#reader = new EventReader(value("content-type") ?? "", (event) => this.#event(event));
    if (this.follower.phase === "live") this.liveSince = this.answeredAt;
    if (end) this.#ended();
  }

  data(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.isOver) return;
    if (this.isStalled) this.#stalledBytes += end - start;
    else this.#stream.grant(end - start);
    try {
      this.#reader?.receive(bytes, start, end);
    } catch (error) {
      this.caller.findings.wrong("whole", `${this.auditId} was told what is no event: ${String(error)}`);
      return this.cancel();
    }
    if (isLast) this.#ended();
  }

  reset(code: number): void {
    if (this.isOver) return;
    this.#over(code === lost ? { kind: "lost" } : { kind: "reset", code });
  }

  sent(): void {}

  #event(event: WatchEvent): void {
    if (this.isOver) return;
    this.caller.findings.tell(() => `${this.auditId} ${event.type} ${event.key}@${event.version}`);
    if (event.type === "ERROR") {
      this.#over({ kind: "error", code: event.code });
      this.#stream.reset(errorCode.CANCEL);
      return;
    }
    this.follower.take(event);
    this.events += 1;
    this.caller.findings.count("events");
    if (event.type !== "BOOKMARK") this.#company.judgeEvent(this, event.version);
    if (event.isInitialEnd) {
      this.events = 0;
      this.countedSince = this.caller.findings.world.now();
    }
    if (this.follower.phase === "live" && this.liveSince < 0)
      this.liveSince = this.caller.findings.world.now();
    this.#owner.event(event);
  }

  #ended(): void {
    if (this.isOver) return;
    const isRefused = this.#status !== 200;
    this.#over(
      isRefused
        ? { kind: "refused", status: this.#status, retryAfterMs: this.#retryAfterMs }
        : { kind: "end" },
    );
  }

  #over(end: WatchEnd): void {
    this.isOver = true;
    this.caller.findings.tell(() => `${this.auditId} over: ${JSON.stringify(end)}`);
    if ((this.#reader?.partialBytes ?? 0) > 0)
      this.caller.findings.wrong("whole", `${this.auditId} ended in mid-event`);
    this.#company.judgeEnd(this, end);
    this.#owner.over(this, end);
  }
}

/**
 * Returns the path with its query in the order of client-go. `watch=true` follows the parameters that a resume changes,
 * and a resume must keep it.
 */
function pathOf({ interest, beginning, atLeast = "", wantsBookmarks, timeoutSeconds }: WatchOrder): string {
  const { resource, namespace, app } = interest;
  const collection =
    namespace === undefined ? `/api/v1/${resource}` : `/api/v1/namespaces/${namespace}/${resource}`;
  const query: string[] = [];
  if (wantsBookmarks) query.push("allowWatchBookmarks=true");
  if (app !== undefined) query.push(`labelSelector=app%3D${app}`);
  if (beginning.from === "version") query.push(`resourceVersion=${beginning.version}`);
  else if (atLeast !== "") query.push(`resourceVersion=${atLeast}`);
  if (beginning.from !== "version") {
    query.push("resourceVersionMatch=NotOlderThan", `sendInitialEvents=${beginning.from === "state"}`);
  }
  if (timeoutSeconds !== undefined) query.push(`timeoutSeconds=${timeoutSeconds}`);
  query.push("watch=true");
  return `${collection}?${query.join("&")}`;
}
