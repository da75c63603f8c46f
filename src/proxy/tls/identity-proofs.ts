/** Sends the canaries of one cluster, one at a time for each backend and certificate, and keeps what they have shown. */
import type { Clock } from "../../base/clock.ts";
import { wordsOf } from "../../base/failure.ts";
import type { AssertedTrust } from "../identity/asserted-identity.ts";
import type { CanaryAnswer } from "../identity/canary.ts";
import { canaryDueMs, type IdentityProof, proofAfter, unasked } from "../identity/identity-proof.ts";

export type ProofsParts = {
  readonly clock: Clock;
  readonly random: () => number;
  readonly ask: (trust: AssertedTrust, backend: string) => Promise<CanaryAnswer>;
  /** Called after each change of a proof. */
  readonly changed: (trust: AssertedTrust, backend: string, now: IdentityProof, was: IdentityProof) => void;
};

type Entry = {
  readonly trust: AssertedTrust;
  readonly backend: string;
  proof: IdentityProof;
  /** Incremented when earlier canaries no longer count: the certificate is new, or the backend is gone. */
  round: number;
  isAsking: boolean;
  stopTimer: () => void;
};

export class IdentityProofs {
  readonly #parts: ProofsParts;
  readonly #byTrust = new Map<AssertedTrust, Map<string, Entry>>();
  /** The address of each backend by its name. At another address, a backend is a new one. */
  #backends: ReadonlyMap<string, string> = new Map();

  constructor(parts: ProofsParts) {
    this.#parts = parts;
  }

  of(trust: AssertedTrust, backend: string): IdentityProof | undefined {
    return this.#byTrust.get(trust)?.get(backend)?.proof;
  }

  all(trust: AssertedTrust): ReadonlyMap<string, IdentityProof> {
    const entries = this.#byTrust.get(trust) ?? new Map<string, Entry>();
    return new Map(Array.from(entries, ([backend, { proof }]) => [backend, proof]));
  }

  reconcile(backends: ReadonlyMap<string, string>): void {
    const was = this.#backends;
    this.#backends = backends;
    for (const [trust, entries] of this.#byTrust) {
      for (const [backend, entry] of entries)
        if (backends.get(backend) !== was.get(backend)) this.#forget(entries, entry);
      this.#addTo(trust, entries);
    }
  }

  /** Begins anew with another certificate, or another kind of assertion. `known`: answers to canaries with it. */
  begin(trust: AssertedTrust, known: ReadonlyMap<string, CanaryAnswer> = new Map()): void {
    const entries = this.#byTrust.get(trust) ?? new Map<string, Entry>();
    this.#byTrust.set(trust, entries);
    for (const entry of entries.values()) {
      entry.round += 1;
      entry.isAsking = false;
      this.#set(entry, unasked);
    }
    this.#addTo(trust, entries);
    for (const entry of entries.values()) {
      const answer = known.get(entry.backend);
      if (answer === undefined) this.#ask(entry);
      else this.#answered(entry, answer);
    }
  }

  /** Asks a backend again at once, because it has become ready: it may have been restarted with other flags. */
  askNow(backend: string): void {
    for (const entries of this.#byTrust.values()) {
      const entry = entries.get(backend);
      if (entry !== undefined) this.#ask(entry);
    }
  }

  stop(): void {
    this.reconcile(new Map());
  }

  #addTo(trust: AssertedTrust, entries: Map<string, Entry>): void {
    for (const backend of this.#backends.keys()) {
      if (entries.has(backend)) continue;
      const entry = { trust, backend, proof: unasked, round: 0, isAsking: false, stopTimer() {} };
      entries.set(backend, entry);
      this.#ask(entry);
    }
  }

  #forget(entries: Map<string, Entry>, entry: Entry): void {
    entry.stopTimer();
    entry.round += 1;
    entries.delete(entry.backend);
    this.#parts.changed(entry.trust, entry.backend, unasked, entry.proof);
  }

  #ask(entry: Entry): void {
    entry.stopTimer();
    if (entry.isAsking) return;
    entry.isAsking = true;
    void this.#await(entry, entry.round);
  }

  async #await(entry: Entry, round: number): Promise<void> {
    const { trust, backend } = entry;
    const answer = await this.#parts.ask(trust, backend).catch(unforeseen);
    if (entry.round !== round) return;
    entry.isAsking = false;
    this.#answered(entry, answer);
  }

  #answered(entry: Entry, answer: CanaryAnswer): void {
    const { clock, random } = this.#parts;
    entry.stopTimer();
    const proof = proofAfter(entry.proof, answer);
    entry.stopTimer = clock.after(canaryDueMs(proof, random()), () => this.#ask(entry));
    this.#set(entry, proof);
  }

  #set(entry: Entry, proof: IdentityProof): void {
    const was = entry.proof;
    entry.proof = proof;
    this.#parts.changed(entry.trust, entry.backend, proof, was);
  }
}

function unforeseen(reason: unknown): CanaryAnswer {
  return { kind: "none", problem: wordsOf(reason) };
}
