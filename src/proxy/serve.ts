/**
 * READ FIRST: one exchange from head to end. The steps are in the order in which they happen, one file each:
 *
 *     listen -> classify -> identify -> choose -> dial -> relay -> respond
 *
 * A request arrives here from `downstream.ts` (HTTP/2) or `h1.ts` (HTTP/1.1) with the side to answer on; whoever
 * called feeds the returned exchange with what the client sends from then on.
 */
import type { Clock } from "../clock.ts";
import { Failure } from "../failure.ts";
import type { Buffered } from "../h2/buffered.ts";
import type { RequestHead } from "../h2/fields.ts";
import type { Side, SideOwner } from "../h2/side.ts";
import type { Backends } from "../health/backends.ts";
import type { Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import { choose } from "./choose.ts";
import { classify } from "./classify.ts";
import type { Client } from "./client.ts";
import { dial, type Wanted } from "./dial.ts";
import type { Exchanges } from "./exchanges.ts";
import { identify } from "./identify.ts";
import { Exchange, type ExchangeEnd, type ExchangeOwner, type Order } from "./relay.ts";
import { respond } from "./respond.ts";
import type { Credential, Trust } from "./trust.ts";
import type { Upstreams } from "./upstreams.ts";

export type ServeParts = {
  readonly buffered: Buffered;
  readonly clock: Clock;
  readonly backends: Backends;
  readonly upstreams: Upstreams;
  readonly trust: Trust;
  readonly exchanges: Exchanges;
  readonly journal: Journal;
};

/** `end`: no body follows the head. */
export type Serve = (request: RequestHead, end: boolean, side: Side, client: Client) => SideOwner;

export function createServe(parts: ServeParts): Serve {
  return (request, end, side, client) => {
    const info = classify(request.method, request.path);
    const identified = identify(request, client);
    const isRefused = identified instanceof Failure;
    const order: Order = {
      client,
      method: request.method,
      kind: info.kind,
      verb: info.verb,
      fields: isRefused ? request.fields : identified.fields,
      auditId: isRefused ? "" : identified.auditId,
      isBodiless: end,
    };
    const course = new Course(parts, parts.trust.credentialOf(request, client.credential));
    const exchange = new Exchange(order, side, course, parts.buffered);
    parts.exchanges.add(exchange);
    if (isRefused) course.failed(exchange, identified);
    else course.place(exchange);
    return exchange;
  };
}

/** The course of one exchange from backend to backend, until one answers or none is left. */
class Course implements ExchangeOwner {
  readonly #parts: ServeParts;
  readonly #credential: Credential;
  #answeredAt = 0;

  constructor(parts: ServeParts, credential: Credential) {
    this.#parts = parts;
    this.#credential = credential;
  }

  place(exchange: Exchange): void {
    const { backends, upstreams, trust } = this.#parts;
    const { client, kind } = exchange.order;
    const loads = (name: string): number => upstreams.loadOf(name);
    const backend = choose({ views: backends.views, loads, bound: client.backend, tried: exchange.tried });
    if (backend instanceof Failure) return this.failed(exchange, backend);
    client.backend = backend;
    exchange.backend = backend;
    const wanted = (): Wanted => ({
      trust: trust.classOf(this.#credential),
      kind: kind === "plain" ? "plain" : "long",
    });
    dial(upstreams, exchange, wanted, (failure) => this.replace(exchange, failure));
  }

  /** Nothing was sent, or nothing was processed: the next backend is asked, a few times at most. */
  replace(exchange: Exchange, failure: Failure): void {
    exchange.tried = [...exchange.tried, exchange.backend];
    if (exchange.tried.length >= limits.attempts) this.failed(exchange, failure);
    else this.place(exchange);
  }

  answered(_exchange: Exchange, status: number): void {
    this.#answeredAt = this.#parts.clock.now();
    this.#parts.trust.learn(this.#credential, status);
  }

  failed(exchange: Exchange, failure: Failure): void {
    const { code, origin, message } = failure;
    const { auditId, method } = exchange.order;
    this.#parts.journal.write({ kind: "exchange.failed", code, origin, message, auditId });
    exchange.refuse(respond(exchange.down, method, failure));
  }

  /** client-go relists after a watch without events that ended within a second: such an end is held back (D5). */
  watchLost(exchange: Exchange, events: number): void {
    const { clock } = this.#parts;
    const ageMs = clock.now() - this.#answeredAt;
    if (events > 0 || ageMs >= limits.shortWatchMs) exchange.endWatch();
    else exchange.stopWaiting = clock.after(limits.shortWatchMs - ageMs, () => exchange.endWatch());
  }

  ended(exchange: Exchange, end: ExchangeEnd): void {
    this.#parts.exchanges.remove(exchange, end);
  }
}
