/**
 * The trace of one sampled request: its span, with child spans for waits and attempts, and for each move of a watch to
 * another backend. Requests that are not sampled have no trace. When the request ends, a record of the trace goes to
 * the sink, which exports it (admin/tracing).
 */
import type { Clock } from "../../base/clock.ts";
import type { Field } from "../../h2/core/field.ts";
import type { Move } from "../../watch/session/end-verdict.ts";
import { type TraceParent, withTraceParent } from "./trace-parent.ts";

export const traceLimits = {
  /**
   * Maximum number of child spans of one request. Even a watch that lasts a week moves to another backend fewer times.
   */
  spans: 64,
  /** Minimum ms of a wait that gets a span. Every request waits a little for its turn of the event loop. */
  waitMs: 1,
};

/** A part of a request. Times are clock readings until the request ends, and then ms since 1970. */
export type SpanRecord = {
  readonly name: "queue" | "connect" | "attempt" | "move";
  readonly startMs: number;
  endMs: number;
  readonly backend: string;
  /**
   * "hedge" or "retry" for an attempt that is not the first; the reason for a move; "" for the first attempt or a wait.
   */
  readonly reason: string;
  /** For a "move": the backend that the watch left. "" for other parts. */
  readonly from: string;
  /** Why an attempt got no response; "": it got one, or this part is not an attempt. */
  error: string;
};

/** What a request's span says about the request. No query, no credential and no user is part of it. */
export type RequestFacts = {
  readonly method: string;
  readonly path: string;
  readonly verb: string;
  readonly auditId: string;
  readonly client: string;
  readonly userAgent: string;
  readonly protocol: string;
  /** Status of the response; 0: none was sent. */
  readonly code: number;
  readonly end: string;
  readonly bytes: number;
};

export type TraceRecord = RequestFacts & {
  readonly traceId: string;
  readonly spanId: string;
  /** The client's span; "": the client sent none. */
  readonly parentId: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly spans: readonly SpanRecord[];
  readonly droppedSpans: number;
};

export type TraceSink = {
  take(record: TraceRecord): void;
};

export class RequestTrace {
  readonly #clock: Clock;
  readonly #sink: TraceSink;
  readonly #ids: { readonly traceId: string; readonly spanId: string; readonly parentId: string };
  readonly #startedAt: number;
  readonly #spans: SpanRecord[] = [];
  #dropped = 0;
  /** The attempts that are under way. */
  readonly #attempts = new Map<object, SpanRecord>();
  #hasAsked = false;
  /** Clock reading since which no attempt has been under way. */
  #idleSince: number;

  constructor(
    { clock, sink }: { readonly clock: Clock; readonly sink: TraceSink },
    { parent, traceId, spanId }: { parent: TraceParent | undefined; traceId: string; spanId: string },
    at: number,
  ) {
    this.#clock = clock;
    this.#sink = sink;
    this.#ids = { traceId: parent?.traceId ?? traceId, spanId, parentId: parent?.spanId ?? "" };
    this.#startedAt = at;
    this.#idleSince = at;
  }

  /**
   * Returns the header fields with a `traceparent` that names the request's span, so that the backend's spans become
   * its children.
   */
  into(fields: readonly Field[]): Field[] {
    return withTraceParent(fields, this.#ids);
  }

  asked(attempt: object, backend: string, isHedge: boolean): void {
    const now = this.#clock.now();
    if (this.#attempts.size === 0) this.#waited("queue", this.#idleSince, "");
    const again = this.#hasAsked ? "retry" : "";
    this.#hasAsked = true;
    const span = { ...part("attempt", now, backend), reason: isHedge ? "hedge" : again };
    this.#add(span);
    this.#attempts.set(attempt, span);
  }

  /** Ends the wait before the request's head was sent to the attempt's backend, and adds a span for this wait. */
  sent(attempt: object): void {
    const span = this.#attempts.get(attempt);
    if (span !== undefined) this.#waited("connect", span.startMs, span.backend);
  }

  /** Ends the span of an attempt that is over without a response. */
  lost(attempt: object, error: string): void {
    const span = this.#attempts.get(attempt);
    if (span === undefined) return;
    span.endMs = this.#clock.now();
    span.error = error;
    this.#attempts.delete(attempt);
    this.#idleSince = span.endMs;
  }

  /** Ends the spans of the other attempts, because this attempt's response is forwarded. */
  answered(attempt: object): void {
    for (const other of this.#attempts.keys()) if (other !== attempt) this.lost(other, "superseded");
  }

  /** Adds a span for a move: the watch continues at another backend. */
  moved({ reason, from, to, ms }: Move): void {
    const now = this.#clock.now();
    this.#add({ ...part("move", now - ms, to), endMs: now, reason, from });
  }

  end(facts: RequestFacts, now: number): void {
    for (const span of this.#attempts.values()) span.endMs = now;
    const wallOf = (at: number): number => at + this.#clock.wall() - now;
    this.#sink.take({
      ...facts,
      ...this.#ids,
      startMs: wallOf(this.#startedAt),
      endMs: wallOf(now),
      spans: this.#spans.map((span) => ({
        ...span,
        startMs: wallOf(span.startMs),
        endMs: wallOf(span.endMs),
      })),
      droppedSpans: this.#dropped,
    });
  }

  #waited(name: "queue" | "connect", since: number, backend: string): void {
    const now = this.#clock.now();
    if (now - since >= traceLimits.waitMs) this.#add({ ...part(name, since, backend), endMs: now });
  }

  #add(span: SpanRecord): void {
    if (this.#spans.length < traceLimits.spans) this.#spans.push(span);
    else this.#dropped += 1;
  }
}

function part(name: SpanRecord["name"], at: number, backend: string): SpanRecord {
  return { name, startMs: at, endMs: at, backend, reason: "", from: "", error: "" };
}
