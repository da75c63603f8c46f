/**
 * When memory runs short (A26): first nobody new comes in, then idle clients go, then requests end, watches last. A little
 * at each look, so that those who come back do not all come at once. Judged by what is live: the heap as a full collection
 * has left it, since what it holds between two of them is mostly garbage.
 */

import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";

export type Load = "normal" | "full" | "crowded" | "critical";

/** What may end, and whose it is. */
export type Sheddable = {
  /** `at`: when it began, a clock reading. */
  readonly order: {
    readonly kind: "plain" | "watch" | "long-running";
    readonly at: number;
    readonly auditId: string;
  };
  cut(): void;
};

export type OverloadParts = {
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

/** The order in which requests end; of one kind the youngest first. */
const order = ["plain", "long-running", "watch"];

export class Overload {
  readonly #parts: OverloadParts;
  /** Is it time to see again what is live? While memory is short, and once more when it is not: pages go back then. */
  #isDue = false;
  load: Load = "normal";

  constructor(parts: OverloadParts) {
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
    for (const one of someOf(this.#parts.idle())) {
      one.drain();
      this.#tell(one.client.address, "memory is short: idle clients go");
    }
  }

  #endRequests(): void {
    const all = this.#parts.exchanges();
    const kind = order.find((one) => all.some((exchange) => exchange.order.kind === one));
    const meant = all
      .filter((exchange) => exchange.order.kind === kind)
      .toSorted((a, b) => b.order.at - a.order.at);
    for (const exchange of someOf(meant)) {
      const { auditId } = exchange.order;
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
  }

  #tell(client: string, reason: string): void {
    this.#parts.journal.write({ kind: "downstream_connection.refused", client, reason });
  }
}

function someOf<T>(all: readonly T[]): readonly T[] {
  return all.slice(0, Math.max(limits.shedLeast, Math.ceil(all.length * limits.shedShare)));
}
