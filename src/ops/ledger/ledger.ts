/**
 * The recent callers: each is an identity that uses one program from one address. At most `ledgerLimits.callers` are
 * kept. A new caller evicts an idle one.
 */

import { Caller, type CallerName } from "./caller.ts";
import { ledgerLimits } from "./limits.ts";
import { ProgramRequests } from "./program-requests.ts";

export class Ledger {
  /** The callers by identity, program and address, oldest first. An eviction moves callers in use to the end. */
  readonly #callers = new Map<string, Caller>();
  /** Requests by the program's metric label. The requests of evicted callers stay counted. */
  readonly #programs = new Map<string, ProgramRequests>();
  readonly #startedAt: number;
  forgotten = 0;

  constructor(now: number) {
    this.#startedAt = now;
  }

  get all(): readonly Caller[] {
    return [...this.#callers.values()];
  }

  /** Requests by program. The first `ledgerLimits.agents` programs have a label each; all others count as "other". */
  get programs(): ReadonlyMap<string, ProgramRequests> {
    return this.#programs;
  }

  get size(): number {
    return this.#callers.size;
  }

  /** Clock reading (ms) from which a caller's first request shows a new caller: earlier ones were there before. */
  get warmAt(): number {
    return this.#startedAt + ledgerLimits.callerNewMs;
  }

  /** Returns the caller with this name. Until the ledger evicts the caller, each call returns the same object. */
  of(name: CallerName, now: number): Caller {
    const { subject, agent, address } = name;
    const key = `${subject.source} ${subject.name} ${subject.pod} ${agent} ${address}`;
    const known = this.#callers.get(key);
    if (known !== undefined) return known;
    if (this.#callers.size >= ledgerLimits.callers) this.#forgetOne(now);
    const caller = new Caller(name, now, this.#programOf(agent));
    this.#callers.set(key, caller);
    return caller;
  }

  #programOf(agent: string): ProgramRequests {
    const label = this.#programs.has(agent) || this.#programs.size < ledgerLimits.agents ? agent : "other";
    let program = this.#programs.get(label);
    if (program === undefined) {
      program = new ProgramRequests();
      this.#programs.set(label, program);
    }
    return program;
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
      this.forgotten += 1;
      return;
    }
  }
}
