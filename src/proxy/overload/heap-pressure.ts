/**
 * When memory runs short (A26): first nobody new comes in, then idle clients go, then requests end, watches last. A little
 * at each look, so that those who come back do not all come at once. Judged by what is live: the heap as a full collection
 * has left it, since what it holds between two of them is mostly garbage.
 */

import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { inSlices, stop } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";

export type Load = "normal" | "full" | "crowded" | "critical";

/** What may end, and whose it is. */
export type Sheddable = {
  /** `at`: when it began, a clock reading. */
  readonly context: {
    readonly kind: Kind;
    readonly at: number;
    readonly auditId: string;
  };
  /** True once it is over: an answer that its client has not read yet is no reason to cut it. */
  readonly isEnded: boolean;
  cut(): void;
};

export type HeapPressureParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Clients that have nothing open, who became idle last first. */
  readonly idle: () => readonly { readonly client: { readonly address: string }; drain(): void }[];
  /** Requests, and tunnels. */
  readonly exchanges: () => readonly Sheddable[];
  /** A full collection now, of which `look` will hear. */
  readonly collect: () => void;
};

/** Once full it stays so until there is room to spare. */
export function loadOf(share: number, before: Load): Load {
  if (share >= limits.heapCritical) return "critical";
  if (share >= limits.heapCrowded) return "crowded";
  if (share >= limits.heapFull || (before !== "normal" && share >= limits.heapEasy)) return "full";
  return "normal";
}

/** The order in which requests end; of one kind those that began last. */
const kinds = ["plain", "long-running", "watch"] as const;
type Kind = (typeof kinds)[number];

export class HeapPressure {
  readonly #parts: HeapPressureParts;
  /** Is it time to see again what is live? While memory is short, and once more when it is not: pages go back then. */
  #isDue = false;
  /** Requests of an earlier look still end. */
  #isEnding = false;
  load: Load = "normal";

  constructor(parts: HeapPressureParts) {
    this.#parts = parts;
  }

  /** So much of the heap's limit is live. */
  look(share: number): void {
    const before = this.load;
    this.load = loadOf(share, before);
    if (this.load !== "normal" || before !== "normal") this.#isDue = true;
    if (this.load === "normal") return;
    if (before === "normal") this.#tell("", "memory is short: nobody new is let in");
    if (this.load !== "full") this.#sendIdleAway();
    if (this.load === "critical") this.#endRequests();
  }

  /** To be called every `limits.heapLookMs`: those who filled it may be gone, and V8 not have looked. */
  beat(): void {
    if (!this.#isDue) return;
    this.#isDue = false;
    this.#parts.collect();
  }

  #sendIdleAway(): void {
    inSlices(this.#parts.clock, someOf(this.#parts.idle()), (one) => {
      one.drain();
      this.#tell(one.client.address, "memory is short: idle clients go");
    });
  }

  /** Nothing here may take a loop turn of 50,000 watches: whoever is served meanwhile has time. */
  #endRequests(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    const byKind: Record<Kind, Sheddable[]> = { plain: [], "long-running": [], watch: [] };
    inSlices(
      this.#parts.clock,
      this.#parts.exchanges(),
      (exchange) => byKind[exchange.context.kind].push(exchange),
      () => this.#endYoungest(kinds.map((kind) => byKind[kind]).find(({ length }) => length > 0) ?? []),
    );
  }

  /** The share of them that began last. */
  #endYoungest(all: readonly Sheddable[]): void {
    let left = shareOf(all.length);
    const times = new Float64Array(all.length);
    for (const [index, { context }] of all.entries()) times[index] = context.at;
    // To sort 50,000 numbers takes 4 ms, and to sort what began then five times as long.
    const oldest = times.toSorted()[Math.max(0, all.length - left)] ?? 0;
    inSlices(
      this.#parts.clock,
      all,
      (exchange) => {
        if (left === 0) return stop;
        if (exchange.context.at < oldest || exchange.isEnded) return undefined;
        left -= 1;
        this.#end(exchange);
        return undefined;
      },
      () => {
        this.#isEnding = false;
      },
    );
  }

  #end(exchange: Sheddable): void {
    const { auditId } = exchange.context;
    const message = "Memory is short: this request ends";
    this.#parts.journal.write({
      kind: "request.failed",
      code: "overload",
      origin: "proxy",
      message,
      auditId,
    });
    exchange.cut();
  }

  #tell(client: string, reason: string): void {
    this.#parts.journal.write({ kind: "downstream_connection.refused", client, reason });
  }
}

/** How many of so many go at one look. */
function shareOf(count: number): number {
  return Math.max(limits.shedLeast, Math.ceil(count * limits.shedShare));
}

function someOf<T>(all: readonly T[]): readonly T[] {
  return all.slice(0, shareOf(all.length));
}
