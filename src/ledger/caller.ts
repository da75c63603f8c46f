/** One caller (an identity, a program and an address together) and its request counts. Times are clock readings. */
import { ledgerLimits } from "./limits.ts";
import type { Subject } from "./subject.ts";

export type CallerName = { readonly subject: Subject; readonly agent: string; readonly address: string };

/** Anomalies of a caller, in words that a page can show. */
export type Oddity = "new" | "no-agent" | "anonymous" | "failing" | "relisting" | "re-watching";

export class Caller implements CallerName {
  readonly subject: Subject;
  readonly agent: string;
  readonly address: string;
  readonly since: number;
  lastAt: number;
  requests = 0;
  watches = 0;
  /** Lists of a resource that it had watched before. */
  relists = 0;
  errors = 0;
  bytes = 0;
  /** Requests in progress. */
  active = 0;
  /** True once it was evicted from the ledger: a holder of a reference must look it up again. */
  isForgotten = false;
  /** The most recent resources that it has watched, by `resourceKey`. */
  #watched: string[] = [];

  constructor({ subject, agent, address }: CallerName, now: number) {
    this.subject = subject;
    this.agent = agent;
    this.address = address;
    this.since = now;
    this.lastAt = now;
  }

  /** A request of it begins at this clock reading. */
  began(at: number): void {
    this.requests += 1;
    this.active += 1;
    this.lastAt = at;
  }

  ended(bytes: number, isError: boolean): void {
    this.active -= 1;
    this.bytes += bytes;
    if (isError) this.errors += 1;
  }

  /**
   * Records a watch. Returns true if it is a relist: it asks for the initial state of a resource that the caller has
   * watched before.
   */
  watched(resource: string, isFromState: boolean): boolean {
    this.watches += 1;
    const hadOne = this.#watched.includes(resource);
    if (!hadOne) this.#watched = [...this.#watched, resource].slice(-ledgerLimits.callerResources);
    return isFromState && hadOne && this.#relisted();
  }

  listed(resource: string): boolean {
    return this.#watched.includes(resource) && this.#relisted();
  }

  #relisted(): boolean {
    this.relists += 1;
    return true;
  }

  /** `isWarm`: true if the process has run long enough to know which callers are new. */
  oddities(now: number, isWarm: boolean): readonly Oddity[] {
    const { requests, errors, relists, watches } = this;
    const isNew = isWarm && now - this.since < ledgerLimits.callerNewMs;
    const isKnown = requests >= ledgerLimits.callerRequests;
    const isMostlyWatches = watches >= ledgerLimits.callerRequests && watches * 2 > requests;
    const all: readonly (readonly [Oddity, boolean])[] = [
      ["new", isNew],
      ["no-agent", this.agent === "unknown"],
      ["anonymous", this.subject.source === "none"],
      ["failing", isKnown && errors * 2 > requests],
      ["relisting", relists >= ledgerLimits.callerRelists && relists * 10 > requests],
      // An informer does not start more than one watch in two seconds on average.
      ["re-watching", isMostlyWatches && watches > (now - this.since) / 2000],
    ];
    return all.flatMap(([oddity, isSo]) => (isSo ? [oddity] : []));
  }
}
