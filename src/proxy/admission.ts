/**
 * Bounds the requests under way whose bearer no backend has accepted yet, and those without a bearer (D15): in all, for
 * each client address and for each bearer. A request leaves this account when its bearer is accepted or when it ends, so
 * what proven clients hold is never counted. Requests beyond a bound wait here, unsent; addresses take turns.
 *
 * A bearer has few requests under way before its first answer: after that answer the others travel as proven, on
 * connections that no 401 ends. They wait for it for a short time only, since the first request may hang.
 */
import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import { keyOf } from "./sources.ts";

/** One request that asks for a place. */
export type Applicant = {
  /** The client's IP address. */
  readonly address: string;
  /** A key of its bearer (never the bearer itself), or "" without one. */
  readonly bearer: string;
  /** Runs in a turn of its own, if the request had to wait: it has a place now, or its bearer is proven. */
  readonly place: () => void;
  /** Runs instead of `place` when there was no place in time. Neither runs after `leave`. */
  readonly refuse: () => void;
};

/** The requests of one address, or of one bearer. */
class Group {
  /** How many of them have a place. */
  open = 0;
  /** All of them. */
  readonly all = new Set<Entry>();
  /** Those that wait, the oldest first: of an address for a place, of a bearer for its first answer. */
  readonly queue = new Set<Entry>();
  readonly key: string;
  readonly #home: Map<string, Group>;

  private constructor(key: string, home: Map<string, Group>) {
    this.key = key;
    this.#home = home;
    home.set(key, this);
  }

  static in(home: Map<string, Group>, key: string): Group {
    return home.get(key) ?? new Group(key, home);
  }

  remove(entry: Entry): void {
    this.all.delete(entry);
    this.queue.delete(entry);
    if (this.all.size === 0) this.#home.delete(this.key);
  }
}

/** An applicant as Admission keeps it. */
export class Entry {
  /** `held` waits for its bearer's first answer, `queued` for a place, `open` has one, `over` is not counted any more. */
  state: "held" | "queued" | "open" | "over" = "held";
  readonly applicant: Applicant;
  readonly source: Group;
  readonly bearer: Group | undefined;

  constructor(applicant: Applicant, source: Group, bearer: Group | undefined) {
    this.applicant = applicant;
    this.source = source;
    this.bearer = bearer;
    source.all.add(this);
    bearer?.all.add(this);
  }
}

export class Admission {
  readonly #clock: Clock;
  readonly #sources = new Map<string, Group>();
  readonly #bearers = new Map<string, Group>();
  /** Addresses with queued requests, in the order of their turns. */
  readonly #turns = new Set<Group>();
  /** Since when each request waits, the oldest first. */
  readonly #waiting = new Map<Entry, number>();
  #open = 0;
  #isLooking = false;

  /** `clock` stands still while our own loop does, so that a stall of ours refuses no request. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Requests that have a place. */
  get open(): number {
    return this.#open;
  }

  /** Requests that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Addresses and bearers of the requests that have a place or wait; nothing else is kept. */
  get groups(): number {
    return this.#sources.size + this.#bearers.size;
  }

  /** Counts the request: it is `open` at once or waits. Undefined when too many wait already. */
  enter(applicant: Applicant): Entry | undefined {
    const source = Group.in(this.#sources, keyOf(applicant.address));
    const bearer = applicant.bearer === "" ? undefined : Group.in(this.#bearers, applicant.bearer);
    const entry = new Entry(applicant, source, bearer);
    if (bearer !== undefined && bearer.open >= limits.unprovenPerBearer) bearer.queue.add(entry);
    else this.#queue(entry);
    this.#next();
    if (entry.state === "open") return entry;
    const waiting = source.all.size - source.open;
    if (this.#waiting.size < limits.waitingExchanges && waiting <= limits.unprovenWaiting) {
      this.#waiting.set(entry, this.#clock.now());
      this.#lookSoon();
      return entry;
    }
    this.leave(entry);
    return undefined;
  }

  /** The request has ended, or its client waits no more. */
  leave(entry: Entry): void {
    if (entry.state === "over") return;
    this.#remove(entry);
    this.#next();
  }

  /** A backend has accepted the bearer: its requests are not counted any more, and those that wait are sent. */
  proved({ bearer }: Entry): void {
    if (bearer === undefined) return;
    // Emptied first: none of them takes the place of another.
    bearer.queue.clear();
    for (const entry of Array.from(bearer.all)) {
      if (entry.state !== "open") this.#clock.soon(entry.applicant.place);
      this.#remove(entry);
    }
    this.#next();
  }

  #remove(entry: Entry): void {
    const { source, bearer, state } = entry;
    if (state === "open") {
      this.#open -= 1;
      source.open -= 1;
      if (bearer !== undefined) bearer.open -= 1;
    }
    entry.state = "over";
    this.#waiting.delete(entry);
    source.remove(entry);
    bearer?.remove(entry);
    if (source.queue.size === 0) this.#turns.delete(source);
    // The first answer did not come, or was a 401: one that waited for it is sent instead.
    const [held] = state === "open" && bearer !== undefined ? bearer.queue : [];
    if (held !== undefined) this.#queue(held);
  }

  #queue(entry: Entry): void {
    entry.bearer?.queue.delete(entry);
    entry.state = "queued";
    entry.source.queue.add(entry);
    this.#turns.add(entry.source);
  }

  /** Gives places away as long as there are any: one to each address in turn. */
  #next(): void {
    for (const source of this.#turns) {
      if (this.#open >= limits.unprovenRequests) return;
      const [entry] = source.queue;
      if (entry === undefined || source.open >= limits.unprovenPerSource) continue;
      source.queue.delete(entry);
      this.#turns.delete(source);
      // Behind the others, and so looked at again in this same loop.
      if (source.queue.size > 0) this.#turns.add(source);
      this.#take(entry);
    }
  }

  #take(entry: Entry): void {
    entry.state = "open";
    this.#open += 1;
    entry.source.open += 1;
    if (entry.bearer !== undefined) entry.bearer.open += 1;
    if (this.#waiting.delete(entry)) this.#clock.soon(entry.applicant.place);
  }

  #lookSoon(): void {
    if (this.#isLooking || this.#waiting.size === 0) return;
    this.#isLooking = true;
    this.#clock.after(limits.unprovenLookMs, () => {
      this.#isLooking = false;
      this.#look(this.#clock.now());
      this.#lookSoon();
    });
  }

  #look(now: number): void {
    for (const [entry, since] of this.#waiting) {
      if (now - since < limits.unprovenHeldMs) break;
      if (entry.state === "held") this.#queue(entry);
      if (now - since < limits.unprovenWaitMs) continue;
      this.#remove(entry);
      this.#clock.soon(entry.applicant.refuse);
    }
    this.#next();
  }
}
