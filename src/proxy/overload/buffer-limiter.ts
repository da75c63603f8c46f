/**
 * Bounds the bytes that the process buffers, over all clusters together. In the tick after the limit is exceeded, cuts
 * the exchanges that hold the most bytes, largest first.
 */
import type { Clock } from "../../base/clock.ts";
import type { Journal } from "../../events/journal.ts";
import { Buffered } from "../../h2/core/buffered.ts";
import { type ActiveRequests, heldBytesOf } from "../request/active-requests.ts";
import { namesOf } from "../request/request-names.ts";

type BufferOwner = { readonly exchanges: Pick<ActiveRequests, "holders">; readonly journal: Journal };

export class BufferLimiter {
  readonly buffered: Buffered;
  readonly #clock: Clock;
  readonly #owners = new Set<BufferOwner>();
  #isUnderWay = false;

  constructor(clock: Clock, limitBytes: number) {
    this.#clock = clock;
    this.buffered = new Buffered(limitBytes);
    this.buffered.onOver = () => this.#relieve();
  }

  /** Adds the exchanges of a cluster. Returns a function that removes them. */
  add(side: BufferOwner): () => void {
    this.#owners.add(side);
    return () => this.#owners.delete(side);
  }

  #relieve(): void {
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    this.#clock.soon(() => {
      this.#isUnderWay = false;
      const holders = Array.from(this.#owners, ({ exchanges, journal }) =>
        exchanges.holders.map((exchange) => ({ exchange, journal })),
      ).flat();
      holders.sort((a, b) => heldBytesOf(b.exchange) - heldBytesOf(a.exchange));
      for (const { exchange, journal } of holders) {
        if (!this.buffered.isOver) return;
        const heldBytes = heldBytesOf(exchange);
        const message = `Buffered bytes exceed the limit of this process: this request held ${heldBytes} bytes`;
        journal.write({
          kind: "request.failed",
          code: "overload",
          origin: "proxy",
          message,
          ...namesOf(exchange.context),
        });
        exchange.cut();
        // The first cut ends a watch, but keeps the bytes that its client has not read. A second cut drops those bytes.
        if (exchange.queuedBytes > 0) exchange.cut();
      }
    });
  }
}
