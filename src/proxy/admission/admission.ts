/**
 * Bounds the active requests without a bearer token, or with a token that no backend has accepted yet (*unproven*,
 * D15): in all, for each client address and for each token. A request that may go to a backend is *admitted*. It counts
 * until it ends or its token is accepted. Requests above a limit wait in the proxy, and are admitted from each client
 * address in turn. The fuller the queue is, the fewer requests of one address may wait, so that no address fills the
 * queue.
 *
 * Only a few requests with a new token are sent before a backend answers one of them, the token's *first response*. The
 * token's other requests are *held* until then. If the token is accepted, they go to upstream connections that carry
 * only requests with accepted tokens: an apiserver closes a connection on which it has sent a 401. The first request
 * may hang, so after a short time the held requests wait for admission, too, behind the first requests of all other
 * tokens from the same address.
 */
import type { Clock } from "../../base/clock.ts";
import { Lru } from "../../base/lru.ts";
import { keyOf } from "./sources.ts";

export const admissionLimits = {
  /**
   * Maximum number of concurrent unproven requests to all backends together. A request is *unproven* if it has no
   * bearer token, or if no backend has accepted its token yet.
   */
  unprovenRequests: 2560,
  /**
   * Maximum number of concurrent unproven requests from one client address. This allows 2,560 requests a second if each
   * takes 100 ms.
   */
  unprovenPerSource: 256,
  /**
   * This many requests with one unproven token may be sent at the same time. The token's other requests are held until
   * a backend answers one of the requests that were sent.
   */
  unprovenPerBearer: 2,
  /**
   * Maximum ms that a request is held until a backend answers another request with the same token. A healthy apiserver
   * rarely takes longer to answer.
   */
  unprovenHeldMs: 250,
  /**
   * Maximum ms that a request waits for admission. The wait is long, because after a refusal client-go would only send
   * the request again.
   */
  unprovenWaitMs: 60_000,
  /** Milliseconds between two searches for requests in the queue that have waited too long. */
  unprovenLookMs: 50,
  /** Maximum number of requests that wait for admission, or for the first response to a request with their token. */
  unprovenWaiting: 62_500,
  /**
   * One address may have at most this many times as many waiting requests as the queue has free places. One address
   * alone may have 50,000 waiting requests (5,000 pods at one address start with ten watches each), which leaves 12,500
   * places free. A second address may then have 10,000 waiting requests.
   */
  unprovenWaitingShare: 4,
  /**
   * A client address whose 401 count exceeds this is *rejected*: fewer of its requests may wait (see `Rejections`). The
   * count falls by one each second, and by one for each accepted token. A node with a few expired tokens stays below
   * this limit; a flood of invalid tokens exceeds it at once.
   */
  rejections: 20,
  rejectionsForgivenPerSecond: 1,
  /**
   * Maximum of an address's 401 count. The count falls from 80 to 20 in a minute, so an address is no longer *rejected*
   * (see `rejections`) a minute after its last 401.
   */
  rejectionsMost: 80,
  /** Maximum number of addresses whose 401s are counted. */
  rejectedAddresses: 10_000,
  /**
   * Maximum number of waiting requests from a *rejected* address (see `rejections`). It is not 0, so that a request
   * with an expired token still gets a 401 from a backend.
   */
  rejectedWaiting: 8000,
} as const;

export type Applicant = {
  readonly address: string;
  /** Hash of the request's bearer token; "": the request has none. */
  readonly bearer: string;
  /** Called in a later tick when a request that had to wait is admitted, or its token is accepted. */
  readonly place: () => void;
  /** Called instead of `place` if the request was not admitted in time. After `Admission.leave`, neither is called. */
  readonly refuse: () => void;
};

/** The requests of one client address, or with one token. */
class Group {
  open = 0;
  /** For a token: number of requests that need not wait for the token's first response (`Entry.isFirst`). */
  firsts = 0;
  readonly all = new Set<Entry>();
  /**
   * Waiting requests, oldest first. For an address: requests that wait for admission. For a token: requests that wait
   * for its first response.
   */
  readonly queue = new Set<Entry>();
  /** For an address: requests that were held for `unprovenHeldMs`. They are admitted only when `queue` is empty. */
  readonly later = new Set<Entry>();
  readonly key: string;
  readonly #home: Map<string, Group>;

  private constructor(key: string, home: Map<string, Group>) {
    this.key = key;
    this.#home = home;
    home.set(key, this);
  }

  get next(): Entry | undefined {
    const [first] = this.queue.size > 0 ? this.queue : this.later;
    return first;
  }

  static in(home: Map<string, Group>, key: string): Group {
    return home.get(key) ?? new Group(key, home);
  }

  remove(entry: Entry): void {
    this.all.delete(entry);
    this.queue.delete(entry);
    this.later.delete(entry);
    if (this.all.size === 0) this.#home.delete(this.key);
  }
}

/** A request that is admitted or waits. */
export class Entry {
  /**
   * held: waits for the first response to a request with its token. queued: waits for admission. open: admitted. over:
   * has ended, or its token is accepted.
   */
  state: "held" | "queued" | "open" | "over" = "held";
  /** True if the request need not wait for the first response to another request with its token. */
  isFirst = true;
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
  readonly #waitingSince = new Map<Entry, number>();
  readonly #rejections: Rejections;
  #open = 0;
  #isLooking = false;

  /**
   * `clock` stands still while the proxy's event loop is stalled, so that no request is refused because of the stall.
   */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#rejections = new Rejections(clock);
  }

  get open(): number {
    return this.#open;
  }

  get waiting(): number {
    return this.#waitingSince.size;
  }

  /** Number of addresses and tokens with requests that are admitted or wait. */
  get groups(): number {
    return this.#sources.size + this.#bearers.size;
  }

  /** True if many requests of this address were answered 401 recently. */
  isRejected(address: string): boolean {
    return this.#rejections.isRejected(keyOf(address));
  }

  /** Counts a request, which is admitted at once (`open`) or waits; undefined: too many requests wait already. */
  enter(applicant: Applicant): Entry | undefined {
    const source = Group.in(this.#sources, keyOf(applicant.address));
    const bearer = applicant.bearer === "" ? undefined : Group.in(this.#bearers, applicant.bearer);
    const entry = new Entry(applicant, source, bearer);
    if (bearer !== undefined && bearer.firsts >= admissionLimits.unprovenPerBearer) {
      entry.isFirst = false;
      bearer.queue.add(entry);
    } else this.#queueFirst(entry);
    this.#next();
    if (entry.state === "open") return entry;
    if (this.#mayWait(source)) {
      this.#waitingSince.set(entry, this.#clock.now());
      this.#lookSoon();
      return entry;
    }
    this.leave(entry);
    return undefined;
  }

  #mayWait({ key, all, open }: Group): boolean {
    const free = admissionLimits.unprovenWaiting - this.#waitingSince.size;
    const waiting = all.size - open;
    if (!this.#rejections.isRejected(key)) return waiting <= free * admissionLimits.unprovenWaitingShare;
    // A request of a rejected address may wait only while the queue is less than half full.
    return waiting <= admissionLimits.rejectedWaiting && free > admissionLimits.unprovenWaiting / 2;
  }

  /**
   * Called when an admitted request has ended, or the client has given up a waiting request. Then admits waiting
   * requests.
   */
  leave(entry: Entry): void {
    if (entry.state === "over") return;
    this.#remove(entry);
    this.#next();
  }

  /** Counts a refused token. If the token is accepted, all waiting requests with it are sent. */
  answered({ bearer, source, state }: Entry, isAccepted: boolean): void {
    if (!isAccepted) return this.#rejections.add(source.key);
    if (bearer === undefined) return;
    // Only the first accepted response of a token is counted, because it sets all entries of the token to `over`.
    if (state !== "over") this.#rejections.accepted(source.key);
    // The queue is emptied first. Otherwise `#remove` would queue another request with this token for admission.
    bearer.queue.clear();
    for (const entry of Array.from(bearer.all)) {
      if (entry.state !== "open") this.#clock.soon(entry.applicant.place);
      this.#remove(entry);
    }
    this.#next();
  }

  #remove(entry: Entry): void {
    const { source, bearer, state, isFirst } = entry;
    if (state === "open") {
      this.#open -= 1;
      source.open -= 1;
    }
    if (isFirst && bearer !== undefined) bearer.firsts -= 1;
    entry.state = "over";
    this.#waitingSince.delete(entry);
    source.remove(entry);
    bearer?.remove(entry);
    if (source.next === undefined) this.#turns.delete(source);
    // If the token's first request got a 401 or no response, one of the token's `held` requests is queued instead.
    const [held] = isFirst && bearer !== undefined ? bearer.queue : [];
    if (held !== undefined) this.#queueFirst(held);
  }

  #queueFirst(entry: Entry): void {
    const { bearer, source } = entry;
    entry.isFirst = true;
    if (bearer !== undefined) bearer.firsts += 1;
    bearer?.queue.delete(entry);
    source.later.delete(entry);
    this.#queue(entry, source.queue);
  }

  #queue(entry: Entry, queue: Set<Entry>): void {
    entry.state = "queued";
    queue.add(entry);
    this.#turns.add(entry.source);
  }

  /** Admits as many waiting requests as the limits allow, one of each address in turn. */
  #next(): void {
    for (const source of this.#turns) {
      if (this.#open >= admissionLimits.unprovenRequests) return;
      const entry = source.next;
      if (entry === undefined || source.open >= admissionLimits.unprovenPerSource) continue;
      source.queue.delete(entry);
      source.later.delete(entry);
      entry.bearer?.queue.delete(entry);
      this.#turns.delete(source);
      // Moves the address to the end of the set, so that this loop visits the address again after all others.
      if (source.next !== undefined) this.#turns.add(source);
      this.#take(entry);
    }
  }

  #take(entry: Entry): void {
    entry.state = "open";
    this.#open += 1;
    entry.source.open += 1;
    if (this.#waitingSince.delete(entry)) this.#clock.soon(entry.applicant.place);
  }

  #lookSoon(): void {
    if (this.#isLooking || this.#waitingSince.size === 0) return;
    this.#isLooking = true;
    this.#clock.after(admissionLimits.unprovenLookMs, () => {
      this.#isLooking = false;
      this.#look(this.#clock.now());
      this.#lookSoon();
    });
  }

  #look(now: number): void {
    for (const [entry, since] of this.#waitingSince) {
      if (now - since < admissionLimits.unprovenHeldMs) break;
      if (entry.state === "held") this.#queue(entry, entry.source.later);
      if (now - since < admissionLimits.unprovenWaitMs) continue;
      this.#remove(entry);
      this.#clock.soon(entry.applicant.refuse);
    }
    this.#next();
  }
}

type RejectionCount = { count: number; at: number };

/**
 * Counts the 401s of each client address, minus its accepted tokens. The count falls with time. An address with a high
 * count is *rejected*: fewer of its requests may wait. Its requests also get separate connections, because each 401
 * ends the connection on which it came.
 */
export class Rejections {
  readonly #clock: Pick<Clock, "now">;
  /** Contains only addresses whose count was above zero. */
  readonly #counts = new Lru<string, RejectionCount>(admissionLimits.rejectedAddresses);

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#counts.size;
  }

  isRejected(address: string): boolean {
    if (this.#counts.size === 0) return false;
    const known = this.#counts.get(address);
    return known !== undefined && this.#now(known) > admissionLimits.rejections;
  }

  add(address: string): void {
    const known = this.#counts.get(address);
    const count = known === undefined ? 0 : this.#now(known);
    this.#counts.set(address, {
      count: Math.min(admissionLimits.rejectionsMost, count + 1),
      at: this.#clock.now(),
    });
  }

  accepted(address: string): void {
    const known = this.#counts.get(address);
    if (known === undefined) return;
    const count = this.#now(known) - 1;
    if (count > 0) this.#counts.set(address, { count, at: this.#clock.now() });
    else this.#counts.delete(address);
  }

  #now({ count, at }: RejectionCount): number {
    return Math.max(
      0,
      count - ((this.#clock.now() - at) * admissionLimits.rejectionsForgivenPerSecond) / 1000,
    );
  }
}
