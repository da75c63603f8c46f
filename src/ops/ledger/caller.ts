/** One caller (a claimed identity, a program and an address) and its request counts. Times are clock readings in ms. */
import { type ClientKind, clientKindOf } from "./client-kind.ts";
import { ledgerLimits } from "./limits.ts";
import { ProgramRequests } from "./program-requests.ts";
import type { Subject } from "./subject.ts";
import { type Urgency, urgencyOf } from "./urgency.ts";

export type CallerName = { readonly subject: Subject; readonly agent: string; readonly address: string };

/** An anomaly of a caller, by its name in the admin page and the API. */
export type Oddity = "new" | "no-agent" | "anonymous" | "failing" | "relisting" | "re-watching";

export class Caller implements CallerName {
  readonly subject: Subject;
  readonly agent: string;
  readonly address: string;
  readonly kind: ClientKind;
  readonly since: number;
  lastAt: number;
  /** How early the caller's watches move (urgency.ts). A caller that renews a leader lease moves among the first. */
  urgency: Urgency;
  requests = 0;
  watches = 0;
  /**
   * Number of requests for all objects of a resource that the caller had watched before: lists, and watches that begin
   * with all objects.
   */
  relists = 0;
  errors = 0;
  bytes = 0;
  /** Number of requests that have begun and not ended. */
  active = 0;
  /** True after the ledger has evicted this caller. Code that keeps a reference must then call `Ledger.of` again. */
  isForgotten = false;
  readonly #program: ProgramRequests;
  /** The resources that the caller watched most recently, in the format of `resourceKey`. */
  #watched: string[] = [];

  constructor({ subject, agent, address }: CallerName, now: number, program = new ProgramRequests()) {
    this.subject = subject;
    this.agent = agent;
    this.address = address;
    this.kind = clientKindOf(agent, subject);
    this.urgency = urgencyOf(this.kind);
    this.since = now;
    this.lastAt = now;
    this.#program = program;
  }

  began(at: number, verb: string): void {
    this.requests += 1;
    this.#program.add(verb);
    this.active += 1;
    this.lastAt = at;
  }

  ended(bytes: number, isError: boolean): void {
    this.active -= 1;
    this.bytes += bytes;
    if (isError) this.errors += 1;
  }

  /**
   * Records a watch. Returns true if the watch begins with all objects of a resource that the caller had watched
   * before.
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

  /**
   * Returns the caller's anomalies. `warmAt`: the caller counts as new only if its first request came at this clock
   * reading (ms) or later. Soon after the start of the process, first requests come from all callers.
   */
  oddities(now: number, warmAt: number): readonly Oddity[] {
    const { requests, errors, relists, watches } = this;
    const isNew = this.since >= warmAt && now - this.since < ledgerLimits.callerNewMs;
    const isKnown = requests >= ledgerLimits.callerRequests;
    const isMostlyWatches = watches >= ledgerLimits.callerRequests && watches * 2 > requests;
    const all: readonly (readonly [Oddity, boolean])[] = [
      ["new", isNew],
      ["no-agent", this.agent === "unknown"],
      ["anonymous", this.subject.source === "none"],
      ["failing", isKnown && errors * 2 > requests],
      ["relisting", relists >= ledgerLimits.callerRelists && relists * 10 > requests],
      // More than one watch in two seconds on average is an anomaly, because an informer starts fewer.
      ["re-watching", isMostlyWatches && watches > (now - this.since) / 2000],
    ];
    return all.flatMap(([oddity, isSo]) => (isSo ? [oddity] : []));
  }
}
