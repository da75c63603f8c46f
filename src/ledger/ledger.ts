/** Who talks: all callers lately, bounded; those that were idle for longest are forgotten first. */

import { Caller, type CallerName } from "./caller.ts";
import { ledgerLimits } from "./limits.ts";

export class Ledger {
  /** In the order in which they were found, or found to be active when somebody was to go. */
  readonly #callers = new Map<string, Caller>();
  /** Requests of those that were forgotten, by what their agent is called. */
  readonly #past = new Map<string, number>();
  readonly #agents = new Set<string>();
  readonly #startedAt: number;
  /** Forgotten to make room. */
  forgotten = 0;

  /** `now`: the present clock reading. */
  constructor(now: number) {
    this.#startedAt = now;
  }

  get all(): readonly Caller[] {
    return [...this.#callers.values()];
  }

  /** Of all callers there were; those of the first few programs by name, the rest as "other". */
  get requestsByAgent(): ReadonlyMap<string, number> {
    const sums = new Map(this.#past);
    for (const { agent, requests } of this.#callers.values()) add(sums, this.#labelOf(agent), requests);
    return sums;
  }

  get size(): number {
    return this.#callers.size;
  }

  /** Are we up for long enough to know who is new? */
  isWarm(now: number): boolean {
    return now - this.#startedAt >= ledgerLimits.callerNewMs;
  }

  /** The same object every time, until it is forgotten. */
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

  /** First come, first named: a label does not change, and what it counts never falls. */
  #labelOf(agent: string): string {
    return this.#agents.has(agent) ? agent : "other";
  }

  /** A flood of newcomers pushes out itself: who has asked lately, or has something open, gets another turn. */
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
      add(this.#past, this.#labelOf(caller.agent), caller.requests);
      this.forgotten += 1;
      return;
    }
  }
}

function add(sums: Map<string, number>, key: string, count: number): void {
  sums.set(key, (sums.get(key) ?? 0) + count);
}
