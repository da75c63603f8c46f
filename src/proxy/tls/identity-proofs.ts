/** Sends the canaries with one certificate, one at a time for each backend, and keeps what they have shown. */
import type { Clock } from "../../base/clock.ts";
import { wordsOf } from "../../base/failure.ts";
import type { CanaryAnswer } from "../../upstream/identity/canary.ts";
import {
  canaryDueMs,
  type IdentityProof,
  proofAfter,
  unasked,
} from "../../upstream/identity/identity-proof.ts";

export type ProofsParts = {
  readonly clock: Clock;
  readonly random: () => number;
  readonly ask: (backend: string) => Promise<CanaryAnswer>;
  /** Called after each change of a proof. */
  readonly changed: (backend: string, now: IdentityProof, was: IdentityProof) => void;
};

type Entry = {
  readonly backend: string;
  readonly address: string;
  proof: IdentityProof;
  isAsking: boolean;
  stopTimer: () => void;
};

export class IdentityProofs {
  readonly #parts: ProofsParts;
  readonly #entries = new Map<string, Entry>();

  constructor(parts: ProofsParts) {
    this.#parts = parts;
  }

  of(backend: string): IdentityProof | undefined {
    return this.#entries.get(backend)?.proof;
  }

  /** The proofs by backend. */
  get all(): Readonly<Record<string, IdentityProof>> {
    return Object.fromEntries(Array.from(this.#entries, ([backend, { proof }]) => [backend, proof]));
  }

  /**
   * Asks each new backend. `backends`: the address of each backend by its name; at another address, a backend is a new
   * one. `known`: answers to canaries of new backends that have already come.
   */
  reconcile(
    backends: ReadonlyMap<string, string>,
    known: ReadonlyMap<string, CanaryAnswer> = new Map(),
  ): void {
    for (const entry of this.#entries.values())
      if (backends.get(entry.backend) !== entry.address) this.#forget(entry);
    for (const [backend, address] of backends) {
      if (this.#entries.has(backend)) continue;
      const entry = { backend, address, proof: unasked, isAsking: false, stopTimer() {} };
      this.#entries.set(backend, entry);
      const answer = known.get(backend);
      if (answer === undefined) this.#ask(entry);
      else this.#answered(entry, answer);
    }
  }

  /** Asks a backend again at once, because it has become ready: it may have been restarted with other flags. */
  askNow(backend: string): void {
    const entry = this.#entries.get(backend);
    if (entry !== undefined) this.#ask(entry);
  }

  /** Forgets all backends. */
  stop(): void {
    this.reconcile(new Map());
  }

  #forget(entry: Entry): void {
    entry.stopTimer();
    this.#entries.delete(entry.backend);
    this.#parts.changed(entry.backend, unasked, entry.proof);
  }

  #ask(entry: Entry): void {
    entry.stopTimer();
    if (entry.isAsking) return;
    entry.isAsking = true;
    void this.#await(entry);
  }

  async #await(entry: Entry): Promise<void> {
    const answer = await this.#parts.ask(entry.backend).catch(unforeseen);
    if (this.#entries.get(entry.backend) !== entry) return;
    entry.isAsking = false;
    this.#answered(entry, answer);
  }

  #answered(entry: Entry, answer: CanaryAnswer): void {
    const { clock, random, changed } = this.#parts;
    const was = entry.proof;
    entry.proof = proofAfter(was, answer);
    entry.stopTimer = clock.after(canaryDueMs(entry.proof, random()), () => this.#ask(entry));
    changed(entry.backend, entry.proof, was);
  }
}

function unforeseen(reason: unknown): CanaryAnswer {
  return { kind: "none", problem: wordsOf(reason) };
}
