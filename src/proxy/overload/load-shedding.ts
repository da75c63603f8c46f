/**
 * Sheds load when memory runs short (A26): first it refuses new clients, then it drains idle clients, then it ends
 * requests, watches last. Each check drains or ends only a small share of them, so that clients do not all reconnect at
 * once. Only the heap after a full collection counts, because between two collections most of the heap is garbage.
 * buffer-limiter.ts bounds the buffered bytes alone.
 *
 * When a time of high load has ended, this file also requests a collection that returns free pages to the kernel.
 * Without the request, V8 keeps these pages (a hundred MiB after an attack) until the process is nearly idle.
 */

import type { Clock } from "../../base/clock.ts";
import { inSlices, stop } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";
import { type NamedContext, namesIn } from "../request/request-names.ts";
import type { HeapState } from "./heap-monitor.ts";

const KiB = 1024;
const MiB = 1024 * KiB;

export const heapLimits = {
  /**
   * Thresholds for the share of the heap limit that is still in use after a full collection (A26). Above `heapFull`,
   * new clients are refused. Above `heapCrowded`, idle sessions are drained. Above `heapCritical`, requests are cut,
   * watches last. Below `heapEasy`, normal operation resumes.
   */
  heapFull: 0.85,
  heapCrowded: 0.92,
  heapCritical: 0.97,
  heapEasy: 0.8,
  /** Pages are returned to the kernel once the heap has shrunk by more than half, and by more than this many bytes. */
  heapPagesBytes: 48 * MiB,
  /** Minimum time in ms between two collections that return pages, because each stops the process for a moment. */
  heapPagesMs: 60_000,
  /**
   * Share of the idle sessions that one check drains, or of the requests that it cuts; but at least `shedLeast` of
   * them.
   */
  shedShare: 0.1,
  shedLeast: 10,
} as const;

export type Load = "normal" | "full" | "crowded" | "critical";

/** A request or tunnel that may be ended when memory is short. */
export type Sheddable = {
  /** `at`: clock reading at which the request began. */
  readonly context: NamedContext & {
    readonly kind: Kind;
    readonly at: number;
  };
  /**
   * True if the request has ended: nothing more comes from the backend. Load shedding does not cut it, even if its
   * client has not read the whole response yet.
   */
  readonly isEnded: boolean;
  cut(): void;
};

export type LoadSheddingParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** How short memory is. New clients are refused while it is short. */
  readonly load: HeapLoad;
  /** The clients without an open request. The client that became idle most recently comes first. */
  readonly idle: () => readonly { readonly client: { readonly address: string }; drain(): void }[];
  readonly exchanges: () => readonly Sheddable[];
  /** Runs a full collection that returns free pages to the kernel, and then calls `look` with the result. */
  readonly collect: () => void;
};

/**
 * Returns the load for this share of the heap. Once memory is short, it counts as short until the share is below
 * `heapEasy`.
 */
export function loadOf(share: number, before: Load): Load {
  if (share >= heapLimits.heapCritical) return "critical";
  if (share >= heapLimits.heapCrowded) return "crowded";
  if (share >= heapLimits.heapFull || (before !== "normal" && share >= heapLimits.heapEasy)) return "full";
  return "normal";
}

/** How short memory is, by the latest measurement. */
export class HeapLoad {
  #level: Load = "normal";

  get level(): Load {
    return this.#level;
  }

  get isShort(): boolean {
    return this.#level !== "normal";
  }

  /** Stores a measurement. `share`: the share of the heap limit that is still in use after a full collection. */
  measure(share: number): void {
    this.#level = loadOf(share, this.#level);
  }
}

/** The order in which requests are cut; within one kind, the latest request first. */
const kinds = ["plain", "long-running", "watch"] as const;
type Kind = (typeof kinds)[number];

export class LoadShedding {
  readonly #parts: LoadSheddingParts;
  /** True if the heap must be collected and measured at the next check: while memory is short, and once afterwards. */
  #isDue = false;
  /** Largest resident size of the heap in bytes, as measured after full collections, since pages were last returned. */
  #peakBytes = 0;
  #hasPagesToReturn = false;
  #releasedAt = Number.NEGATIVE_INFINITY;
  #isCuttingRequests = false;

  constructor(parts: LoadSheddingParts) {
    this.#parts = parts;
  }

  get load(): Load {
    return this.#parts.load.level;
  }

  look({ share, residentBytes }: HeapState): void {
    this.#peakBytes = Math.max(this.#peakBytes, residentBytes);
    this.#hasPagesToReturn =
      this.#peakBytes - residentBytes > Math.max(residentBytes, heapLimits.heapPagesBytes);
    const before = this.load;
    this.#parts.load.measure(share);
    if (this.load !== "normal" || before !== "normal") this.#isDue = true;
    if (this.load === "normal") return;
    if (before === "normal") this.#journal("", "memory is short: new clients are refused");
    if (this.load !== "full") this.#sendIdleAway();
    if (this.load === "critical") this.#endRequests();
  }

  /**
   * Requests a collection if one is due. Called every `limits.heapLookMs`: V8 itself might run none after the clients
   * that filled the heap have left.
   */
  beat(): void {
    const now = this.#parts.clock.now();
    const isReleasing = this.#hasPagesToReturn && now - this.#releasedAt >= heapLimits.heapPagesMs;
    if (!this.#isDue && !isReleasing) return;
    this.#isDue = false;
    if (isReleasing) this.#release(now);
    this.#parts.collect();
  }

  #release(now: number): void {
    this.#hasPagesToReturn = false;
    this.#peakBytes = 0;
    this.#releasedAt = now;
  }

  #sendIdleAway(): void {
    inSlices(this.#parts.clock, someOf(this.#parts.idle()), (one) => {
      one.drain();
      this.#journal(one.client.address, "memory is short: idle clients are drained");
    });
  }

  /** Works in slices, because a single turn over 50,000 watches would delay other requests. */
  #endRequests(): void {
    if (this.#isCuttingRequests) return;
    this.#isCuttingRequests = true;
    const byKind: Record<Kind, Sheddable[]> = { plain: [], "long-running": [], watch: [] };
    inSlices(
      this.#parts.clock,
      this.#parts.exchanges(),
      (exchange) => byKind[exchange.context.kind].push(exchange),
      () => this.#endYoungest(kinds.map((kind) => byKind[kind]).find(({ length }) => length > 0) ?? []),
    );
  }

  /** Cuts the requests that began last. Their number is the share `shedShare` of `all`. */
  #endYoungest(all: readonly Sheddable[]): void {
    let left = shareOf(all.length);
    const times = new Float64Array(all.length);
    for (const [index, { context }] of all.entries()) times[index] = context.at;
    // Sorts the times and not the exchanges: 50,000 numbers take 4 ms, exchanges five times as long.
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
        this.#isCuttingRequests = false;
      },
    );
  }

  #end(exchange: Sheddable): void {
    const message = "Memory is short: the proxy ended this request";
    this.#parts.journal.write({
      kind: "request.failed",
      code: "overload",
      origin: "proxy",
      message,
      ...namesIn(exchange.context),
    });
    exchange.cut();
  }

  #journal(client: string, reason: string): void {
    this.#parts.journal.write({ kind: "downstream_connection.refused", client, reason });
  }
}

function shareOf(count: number): number {
  return Math.max(heapLimits.shedLeast, Math.ceil(count * heapLimits.shedShare));
}

function someOf<T>(all: readonly T[]): readonly T[] {
  return all.slice(0, shareOf(all.length));
}
