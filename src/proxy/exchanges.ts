/** All live exchanges, for drain and for whoever wants to see them, and how the finished ones ended. */
import type { Kind } from "./classify.ts";
import type { Exchange, ExchangeEnd } from "./relay.ts";

/** RequestInfo's verbs; what clients invent beyond them is "other": a label must not grow with it (A54). */
const verbs = new Set(
  "get list watch create update patch delete deletecollection proxy head post put options".split(" "),
);

export type Count = { readonly verb: string; readonly code: number; readonly backend: string; count: number };

/** The unread are looked through when they are this many, and again when they are twice as many as were left. */
const sweptSize = 64;

export class Exchanges {
  readonly #live = new Set<Exchange>();
  /** Over, with an answer that a slow reader has not taken yet: they hold memory, and can be cut like the living. */
  readonly #unread = new Set<Exchange>();
  #sweepAt = sweptSize;
  readonly #ends: Record<ExchangeEnd, number> = {
    complete: 0,
    "client-gone": 0,
    "backend-gone": 0,
    refused: 0,
  };
  readonly #counts = new Map<string, Count>();
  /** Where the last one was counted: most are like the one before, and need no key. */
  #lastCount: Count | undefined;
  /** What watches that are over have delivered. */
  readonly #ended = { events: 0, bytes: 0 };

  add(exchange: Exchange): void {
    this.#live.add(exchange);
  }

  remove(exchange: Exchange, end: ExchangeEnd): void {
    this.#live.delete(exchange);
    if (exchange.queuedBytes > 0) this.#keepUnread(exchange);
    this.#ends[end] += 1;
    this.#ended.events += exchange.events;
    if (exchange.order.kind === "watch") this.#ended.bytes += exchange.sentBytes;
    const last = this.#lastCount;
    const isAlike = last?.code === exchange.status && last.backend === exchange.backend;
    if (isAlike && last.verb === exchange.order.verb) last.count += 1;
    else this.#count(exchange);
  }

  #count(exchange: Exchange): void {
    const verb = verbs.has(exchange.order.verb) ? exchange.order.verb : "other";
    // A backend may answer any code of three digits: beyond the usual ones only the class is kept.
    const { status, backend } = exchange;
    const code = this.#counts.size < 500 ? status : Math.floor(status / 100) * 100;
    const key = `${verb} ${code} ${backend}`;
    const count = this.#counts.get(key) ?? { verb, code, backend, count: 0 };
    count.count += 1;
    this.#counts.set(key, count);
    this.#lastCount = count;
  }

  /** Nobody tells when the last octet has left, so those that have none are found in passing. */
  #keepUnread(exchange: Exchange): void {
    this.#unread.add(exchange);
    if (this.#unread.size >= this.#sweepAt) this.#sweep();
  }

  #sweep(): void {
    for (const exchange of this.#unread) if (exchange.queuedBytes === 0) this.#unread.delete(exchange);
    this.#sweepAt = Math.max(sweptSize, 2 * this.#unread.size);
  }

  /** Whoever holds octets, the most first. */
  get holders(): readonly Exchange[] {
    this.#sweep();
    return [...this.#live, ...this.#unread]
      .filter((exchange) => exchange.queuedBytes > 0)
      .toSorted((a, b) => b.queuedBytes - a.queuedBytes);
  }

  get size(): number {
    return this.#live.size;
  }

  get live(): Iterable<Exchange> {
    return this.#live;
  }

  get counts(): readonly Count[] {
    return [...this.#counts.values()];
  }

  get ends(): Readonly<Record<ExchangeEnd, number>> {
    return this.#ends;
  }

  /** Whole events, and octets, that watches have delivered since the start. */
  get watched(): { readonly events: number; readonly bytes: number } {
    let { events, bytes } = this.#ended;
    for (const exchange of this.#live) {
      if (exchange.order.kind !== "watch") continue;
      events += exchange.events;
      bytes += exchange.sentBytes;
    }
    return { events, bytes };
  }

  active(kind: Kind): number {
    let count = 0;
    for (const exchange of this.#live) if (exchange.order.kind === kind) count += 1;
    return count;
  }
}
