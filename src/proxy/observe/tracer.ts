/**
 * Decides which requests are traced: requests whose client has sampled its own span, and a share of the requests
 * without a client's span. If a client decided not to sample, the request is not traced, and its trace context is
 * forwarded unchanged.
 */
import { randomBytes } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import type { Field } from "../../h2/core/field.ts";
import { RequestTrace, type TraceSink } from "./request-trace.ts";
import { traceParentIn } from "./trace-parent.ts";

export class Tracer {
  readonly #clock: Clock;
  readonly #sink: TraceSink;
  /**
   * Probability with which a request without a client's span is traced, from 0 to 1; undefined: no request is traced at
   * all.
   */
  #share: number | undefined;

  constructor(clock: Clock, sink: TraceSink) {
    this.#clock = clock;
    this.#sink = sink;
  }

  /** Sets the probability (`#share`) for requests that begin from now on. */
  configure(share: number | undefined): void {
    this.#share = share;
  }

  /** Returns the trace of a request that began `at` this clock reading; undefined: the request is not traced. */
  begin(fields: readonly Field[], at: number): RequestTrace | undefined {
    if (this.#share === undefined) return undefined;
    const parent = traceParentIn(fields);
    if (parent === undefined ? Math.random() >= this.#share : !parent.isSampled) return undefined;
    const random = randomBytes(24).toString("hex");
    const ids = { parent, traceId: random.slice(0, 32), spanId: random.slice(32) };
    return new RequestTrace({ clock: this.#clock, sink: this.#sink }, ids, at);
  }
}
