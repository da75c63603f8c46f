/** The recent callers, at most `ledgerLimits.callers`. A new caller evicts an idle one. */

import { Caller, type CallerName } from "./caller.ts";
import { ledgerLimits } from "./limits.ts";

export class Ledger {
  /** By identity, program and address, in the order of insertion. An eviction moves callers in use to the end. */
  readonly #callers = new Map<string, Caller>();
  readonly #evictedRequests = new Map<string, number>();
  readonly #agents = new Set<string>();
  readonly #startedAt: number;
  forgotten = 0;

  constructor(now: number) {
    this.#startedAt = now;
  }

  get all(): readonly Caller[] {
    return [...this.#callers.values()];
  }

  /** Number of requests by the callers' programs. The first programs have a label each, the rest is "other". */
  get requestsByAgent(): ReadonlyMap<string, number> {
    const sums = new Map(this.#evictedRequests);
    for (const { agent, requests } of this.#callers.values()) add(sums, this.#labelOf(agent), requests);
    return sums;
  }

  get size(): number {
    return this.#callers.size;
  }

  /** True if the process has run long enough to tell which callers are new. */
  isWarm(now: number): boolean {
    return now - this.#startedAt >= ledgerLimits.callerNewMs;
  }

  /** Returns the caller with this name, which is the same object until the ledger evicts it. */
  of(name: CallerName, now: number): Caller {
    const { subject, agent, address } = name;
    const key = `${subject.source} ${subject.name} ${subject.pod} ${agent} ${address}`;
    const known = this.#callers.get(key);
    if (known !== undefined) return known;
    if (this.#callers.size >= ledgerLimits.callers) this.#forgetOne(now);
    const caller = new Caller(name, now);
    if (this.#agents.size < ledgerLimits.agents) this.#agents.add(agent);
    this.#callers.set(key, caller);
    return caller;
  }

  /** Returns a program's metric label, which never changes, so that the counters never decrease. */
  #labelOf(agent: string): string {
    return this.#agents.has(agent) ? agent : "other";
  }

  /** Evicts an idle caller. Skips callers in use, so that a flood of new callers evicts only callers of the flood. */
  #forgetOne(now: number): void {
    let tries = ledgerLimits.callerTurns;
    for (const [key, caller] of this.#callers) {
      this.#callers.delete(key);
      tries -= 1;
      const isKnown = caller.requests >= ledgerLimits.callerRequests;
      const isUsed = caller.active > 0 || (isKnown && now - caller.lastAt < ledgerLimits.callerNewMs);
      if (tries > 0 && isUsed) {
        this.#callers.set(key, caller);
        continue;
      }
      caller.isForgotten = true;
      add(this.#evictedRequests, this.#labelOf(caller.agent), caller.requests);
      this.forgotten += 1;
      return;
    }
  }
}

function add(sums: Map<string, number>, key: string, count: number): void {
  sums.set(key, (sums.get(key) ?? 0) + count);
}
