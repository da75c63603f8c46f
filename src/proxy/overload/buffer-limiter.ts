/**
 * Bounds the bytes that wait in this process, over all clusters together. Above the bound the exchanges that hold the
 * most are ended, largest first, in the tick in which it is noticed.
 */
import type { Clock } from "../../base/clock.ts";
import type { Journal } from "../../events/journal.ts";
import { Buffered } from "../../h2/core/buffered.ts";
import { type ActiveRequests, heldBytesOf } from "../request/active-requests.ts";

/** One cluster's exchanges, with the journal for their ends. */
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

  /** Returns the function that removes it. */
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
        const message = `Too much waits in this process: ${heldBytes} bytes of it for one exchange`;
        const { auditId } = exchange.context;
        journal.write({ kind: "request.failed", code: "overload", origin: "proxy", message, auditId });
        exchange.cut();
        // A watch ended between two events, behind the bytes that its slow reader has not taken: those are what waits.
        if (exchange.queuedBytes > 0) exchange.cut();
      }
    });
  }
}
