/** One caller: an identity, a program and an address together, and what they have asked for. Times are clock readings. */
import { ledgerLimits } from "./limits.ts";
import type { Subject } from "./subject.ts";

export type CallerName = { readonly subject: Subject; readonly agent: string; readonly address: string };

/** What looks odd about a caller, in words that a page can show. */
export type Oddity = "new" | "no-agent" | "anonymous" | "failing" | "relisting" | "re-watching";

export class Caller implements CallerName {
  readonly subject: Subject;
  readonly agent: string;
  readonly address: string;
  readonly since: number;
  lastAt: number;
  requests = 0;
  watches = 0;
  /** Lists of what it had watched. */
  relists = 0;
  errors = 0;
  bytes = 0;
  /** Requests that are being answered. */
  active = 0;
  /** It was forgotten: whoever still holds it looks it up anew. */
  isForgotten = false;
  /** What it has had a watch of, as `resourceKey` has it: a few, the latest. */
  #watched: string[] = [];

  constructor({ subject, agent, address }: CallerName, now: number) {
    this.subject = subject;
    this.agent = agent;
    this.address = address;
    this.since = now;
    this.lastAt = now;
  }

  /** An initial state was asked for by a watch: counts as a relist when it had one before. Returns whether it did. */
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

  /** `isWarm`: are we up for long enough to know who is new? */
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
      // More watches than one in two seconds, on average, are no informer's.
      ["re-watching", isMostlyWatches && watches > (now - this.since) / 2000],
    ];
    return all.flatMap(([oddity, isSo]) => (isSo ? [oddity] : []));
  }
}
