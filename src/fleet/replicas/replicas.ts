/**
 * The replicas: the watchkeeper processes in front of the same apiservers. Each one sends a request to all others every
 * few seconds, and counts those that answer. The admin page and the API show the replicas, and limits of scope
 * AllReplicas are divided by their number. No replica decides for another, so replicas need no agreement.
 */
import { isDeepStrictEqual } from "node:util";
import { type Address, textOf } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import { Interval } from "../../base/interval.ts";
import type { Journal } from "../../events/journal.ts";
import type { ReplicasConfig, ReplicaTls } from "../../ops/config/replicas.ts";
import { replicaLimits } from "./limits.ts";
import type { ReplicaFacts } from "./replica.ts";

/**
 * "live": has answered in the last `liveMs`. "unknown": has never answered, but was added to the list less than
 * `liveMs` ago. "silent": every other replica.
 */
export const replicaStates = ["live", "silent", "unknown"] as const;
export type ReplicaState = (typeof replicaStates)[number];

/** A replica in the list. */
export type ReplicaRow = {
  /** The name of the replica's host if no other replica has the same one, else the replica's address. */
  readonly name: string;
  /** The replica's address as host:port; "" for this process if none of the addresses has turned out to be its own. */
  readonly address: string;
  readonly isSelf: boolean;
  readonly state: ReplicaState;
  /** Clock reading (ms) at which the state began. */
  readonly since: number;
  /** Clock reading (ms) of the last answer; -1: none yet. */
  readonly answeredAt: number;
  /** What the replica says about itself; undefined if it has never answered. */
  readonly facts: ReplicaFacts | undefined;
  /** Why the last request failed; "": it succeeded. */
  readonly lastError: string;
};

/** The address of a replica, and its TLS settings; `tls` undefined: plain HTTP. */
export type ReplicaTarget = { readonly address: Address; readonly tls: ReplicaTls | undefined };

export type ReplicasParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly self: () => ReplicaFacts;
  readonly ask: (target: ReplicaTarget) => Promise<ReplicaFacts | Failure>;
  /** Resolves a name repeatedly, and calls `onFound` with each changed result. Returns a function that stops this. */
  readonly resolve: (
    name: NonNullable<ReplicasConfig["name"]>,
    onFound: (addresses: readonly Address[]) => void,
  ) => () => void;
  /** The number of replicas that share limits. */
  readonly shared: { readonly count: number; set(count: number): void };
};

/** An address of a replica, and the results of the requests to it. */
class Place {
  readonly address: Address;
  readonly text: string;
  readonly listedAt: number;
  /**
   * False if the configuration no longer lists the address, or the name no longer resolves to it. The address then gets
   * no more requests, and is forgotten once its replica no longer shares limits (`sharesAt`).
   */
  isListed = true;
  facts: ReplicaFacts | undefined;
  answeredAt = -1;
  liveSince = -1;
  lastError = "";
  /** True if the journal has reported the replica as joined, and not as lost after that. */
  isReportedLive = false;

  constructor(address: Address, now: number) {
    this.address = address;
    this.text = textOf(address);
    this.listedAt = now;
  }

  get isIpv6(): boolean {
    return this.address.host.includes(":");
  }

  stateAt(now: number): ReplicaState {
    if (this.answeredAt < 0) return now - this.listedAt < replicaLimits.liveMs ? "unknown" : "silent";
    return now - this.answeredAt < replicaLimits.liveMs ? "live" : "silent";
  }

  sinceAt(now: number): number {
    const state = this.stateAt(now);
    if (state === "live") return this.liveSince;
    return state === "unknown" ? this.listedAt : this.lastSeenAt + replicaLimits.liveMs;
  }

  get lastSeenAt(): number {
    return Math.max(this.answeredAt, this.listedAt);
  }

  answered(facts: ReplicaFacts, now: number): void {
    if (this.stateAt(now) !== "live" || this.facts?.id !== facts.id) this.liveSince = now;
    this.facts = facts;
    this.answeredAt = now;
    this.lastError = "";
  }

  /**
   * True while the replica at this address counts as one of the replicas among which limits of scope AllReplicas are
   * divided. The caller counts a replica with several addresses once.
   */
  sharesAt(now: number): boolean {
    if (this.answeredAt < 0) return this.isListed && this.stateAt(now) === "unknown";
    return now - this.answeredAt < (this.isListed ? replicaLimits.sharesMs : replicaLimits.liveMs);
  }
}

export class Replicas {
  readonly #parts: ReplicasParts;
  readonly #startedAt: number;
  readonly #interval: Interval;
  /** The known addresses, by their text (host:port). */
  readonly #places = new Map<string, Place>();
  #config: ReplicasConfig | undefined;
  #stopResolving = (): void => {};
  #isAsking = false;
  #isStopped = false;
  /**
   * True if the list of addresses changed during a round. The next round then follows immediately, without waiting for
   * the interval.
   */
  #isDue = false;

  constructor(parts: ReplicasParts) {
    this.#parts = parts;
    this.#startedAt = parts.clock.now();
    this.#interval = new Interval(parts.clock, replicaLimits.askEveryMs, () => void this.#round());
  }

  /** The number of replicas that share limits, this process included. */
  get count(): number {
    return this.#parts.shared.count;
  }

  /** Applies another configuration immediately. Undefined: this process is the only replica. */
  configure(config: ReplicasConfig | undefined): void {
    const before = this.#config;
    this.#config = config;
    const { addresses = [], name } = config ?? {};
    // If addresses and name are unchanged, nothing restarts. Changed TLS settings take effect with the next request.
    if (isDeepStrictEqual([addresses, name], [before?.addresses ?? [], before?.name])) return;
    this.#stopResolving();
    this.#interval.stop();
    if (config !== undefined) this.#interval.start();
    // If the new configuration has a name, the old addresses are kept, so that their replicas still share limits until
    // the name is resolved.
    if (name === undefined) this.#keepOnly(addresses);
    this.#list(addresses);
    const found = (all: readonly Address[]): void => this.#list(all);
    this.#stopResolving = name === undefined ? () => {} : this.#parts.resolve(name, found);
  }

  #keepOnly(addresses: readonly Address[]): void {
    const kept = new Set(addresses.map((address) => textOf(address)));
    for (const text of this.#places.keys()) if (!kept.has(text)) this.#places.delete(text);
  }

  stop(): void {
    this.#isStopped = true;
    this.#interval.stop();
    this.#stopResolving();
  }

  /**
   * Replaces the listed addresses with `all`, which comes from the configuration or from resolving the name. Ignores
   * addresses beyond the limit.
   */
  #list(all: readonly Address[]): void {
    if (this.#isStopped) return;
    const now = this.#parts.clock.now();
    const addresses = all.slice(0, replicaLimits.replicas);
    const listed = new Set(addresses.map((address) => textOf(address)));
    for (const place of this.#places.values()) place.isListed = listed.has(place.text);
    for (const address of addresses) {
      const text = textOf(address);
      if (!this.#places.has(text)) this.#places.set(text, new Place(address, now));
    }
    this.#forget(now);
    this.#recount();
    if (this.#isAsking) this.#isDue = true;
    else void this.#round();
  }

  /**
   * Forgets unlisted addresses whose replicas no longer share limits. If more than `replicaLimits.replicas` addresses
   * are unlisted, forgets the oldest of them too.
   */
  #forget(now: number): void {
    const unlisted = Array.from(this.#places.values()).filter(({ isListed }) => !isListed);
    const excess = unlisted.length - replicaLimits.replicas;
    for (const [at, place] of unlisted.entries())
      if (at < excess || !place.sharesAt(now)) this.#places.delete(place.text);
  }

  /** Asks every listed address once. Rounds do not overlap. */
  async #round(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const waiting = Array.from(this.#places.values()).filter(({ isListed }) => isListed);
    const worker = async (): Promise<void> => {
      for (let place = waiting.shift(); place !== undefined; place = waiting.shift())
        // Each loop asks one replica at a time, so the number of loops limits the number of concurrent requests.
        // oxlint-disable-next-line no-await-in-loop
        await this.#ask(place);
    };
    const workers = Math.min(replicaLimits.askedAtOnce, waiting.length);
    try {
      await Promise.all(Array.from({ length: workers }, worker));
    } finally {
      this.#isAsking = false;
    }
    if (this.#isStopped) return;
    this.#forget(this.#parts.clock.now());
    // Losses are reported only after a round. If this process was stopped for a minute, for example, it received no
    // answers in that time, although all replicas may be live.
    this.#reportLost();
    this.#recount();
    const isDue = this.#isDue;
    this.#isDue = false;
    if (isDue) void this.#round();
  }

  async #ask(place: Place): Promise<void> {
    const target = { address: place.address, tls: this.#config?.tls };
    // A rejected promise becomes a Failure of this replica. Otherwise the rejection would end the round, and no caller
    // would handle it.
    const outcome = await this.#parts.ask(target).catch((reason: unknown) => failureFrom(reason, "proxy"));
    // A reload may have removed the address meanwhile.
    if (this.#isStopped || this.#places.get(place.text) !== place) return;
    if (outcome instanceof Failure) place.lastError = outcome.message;
    else {
      place.answered(outcome, this.#parts.clock.now());
      this.#reportJoined(place);
      if (this.#sharers() > this.count) this.#recount();
    }
  }

  #reportJoined(place: Place): void {
    const { facts, isReportedLive, text } = place;
    if (isReportedLive || facts === undefined || facts.id === this.#parts.self().id) return;
    const isKnown = this.#placesOf(facts.id).some((other) => other.isReportedLive);
    place.isReportedLive = true;
    if (isKnown) return;
    const replica = facts.name || text;
    this.#parts.journal.write({
      kind: "replica.joined",
      replica,
      address: text,
      binaryVersion: facts.version,
    });
  }

  #reportLost(): void {
    const now = this.#parts.clock.now();
    for (const place of this.#onePerReplica()) {
      // If the name no longer resolves to a replica's address, the replica was removed on purpose, so its loss is not
      // reported.
      if (!place.isListed || place.stateAt(now) !== "silent") continue;
      const reported = this.#placesOf(place.facts?.id).filter(({ isReportedLive }) => isReportedLive);
      if (reported.length === 0) continue;
      for (const one of reported) one.isReportedLive = false;
      this.#parts.journal.write({
        kind: "replica.lost",
        replica: place.facts?.name || place.text,
        address: place.text,
        silentMs: Math.round(now - place.answeredAt),
        reason: place.lastError,
      });
    }
  }

  #placesOf(id: string | undefined): readonly Place[] {
    return Array.from(this.#places.values()).filter(({ facts }) => facts !== undefined && facts.id === id);
  }

  #recount(): void {
    const count = this.#sharers();
    if (count !== this.count) this.#parts.shared.set(count);
  }

  /**
   * Returns the number of replicas that share limits. Addresses that have not answered yet count as replicas, so that
   * replicas that start together do not each allow the whole limit.
   */
  #sharers(): number {
    const now = this.#parts.clock.now();
    const { id: own } = this.#parts.self();
    const sharing = this.#replicaPlaces().filter((place) => place.sharesAt(now));
    const ids = new Set(sharing.flatMap(({ facts }) => (facts === undefined ? [] : [facts.id])));
    const unknown = sharing.filter(({ facts }) => facts === undefined).length;
    // One of the addresses that have not answered yet may be this process's own, which must not be counted twice.
    const isOwnUnknown = unknown > 0 && !ids.has(own);
    if (!isOwnUnknown) ids.add(own);
    return Math.min(replicaLimits.replicas, Math.max(1, ids.size + unknown));
  }

  /** One row for each replica: this process first, then the others by name. */
  get rows(): readonly ReplicaRow[] {
    const now = this.#parts.clock.now();
    const self = this.#parts.self();
    const places = this.#onePerReplica();
    const isSelf = ({ facts }: Place): boolean => facts?.id === self.id;
    const others = places.filter((place) => !isSelf(place));
    const names = [self.name, ...others.map(({ facts }) => facts?.name ?? "")];
    const isUnique = (name: string): boolean =>
      name !== "" && names.indexOf(name) === names.lastIndexOf(name);
    const nameOf = (name: string, address: string): string => (isUnique(name) ? name : address);
    const ownAddress = places.find(isSelf)?.text ?? "";
    const own: ReplicaRow = {
      name: nameOf(self.name, ownAddress) || self.id.slice(0, 8),
      address: ownAddress,
      isSelf: true,
      state: "live",
      since: this.#startedAt,
      answeredAt: now,
      facts: self,
      lastError: "",
    };
    const rest = others.map(
      (place): ReplicaRow => ({
        name: nameOf(place.facts?.name ?? "", place.text),
        address: place.text,
        isSelf: false,
        state: place.stateAt(now),
        since: place.sinceAt(now),
        answeredAt: place.answeredAt,
        facts: place.facts,
        lastError: place.lastError,
      }),
    );
    return [own, ...rest.toSorted((one, other) => (one.name < other.name ? -1 : 1))];
  }

  /**
   * Returns the addresses, except second addresses of replicas. If the name resolves to both IPv4 and IPv6 addresses,
   * but replicas have answered on one family only, the addresses of the other family are omitted, because they belong
   * to the same replicas.
   */
  #replicaPlaces(): readonly Place[] {
    const all = Array.from(this.#places.values());
    if (this.#config?.name === undefined) return all;
    const answering = new Set(all.filter(({ answeredAt }) => answeredAt >= 0).map(({ isIpv6 }) => isIpv6));
    return answering.size === 0 ? all : all.filter(({ isIpv6 }) => answering.has(isIpv6));
  }

  /**
   * Returns one address for each replica. If a replica has several, such as an IPv4 and an IPv6 address, returns the
   * one that answered last.
   */
  #onePerReplica(): readonly Place[] {
    const byId = new Map<string, Place>();
    for (const place of this.#replicaPlaces()) {
      const key = place.facts?.id ?? place.text;
      const other = byId.get(key);
      if (other === undefined || other.answeredAt < place.answeredAt) byId.set(key, place);
    }
    return Array.from(byId.values());
  }

  /** Returns the row with this name or address; undefined: there is none. */
  named(name: string): ReplicaRow | undefined {
    const { rows } = this;
    return (
      rows.find((row) => row.name === name) ?? rows.find(({ address }) => address !== "" && address === name)
    );
  }

  /** Returns the address and TLS settings for requests to a replica; undefined if its address is not in the list. */
  targetOf({ address }: ReplicaRow): ReplicaTarget | undefined {
    const place = this.#places.get(address);
    return place === undefined ? undefined : { address: place.address, tls: this.#config?.tls };
  }
}
