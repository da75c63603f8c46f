/**
 * Gives several processes, each with its own data path, one verdict about each backend. One process, the *parent*,
 * judges from its own evidence and from that of the others, its *workers*. The code in src/fleet/workers carries the messages
 * between the processes.
 */
import type { Clock } from "../../base/clock.ts";
import type { BackendFacts } from "../../health/backend.ts";
import { ConnectionStates } from "../../health/connection-states.ts";
import type { Evidence } from "../../health/evidence.ts";
import { healthLimits } from "../../health/limits.ts";
import type { ProbeCounts, Probers } from "../../health/prober.ts";
import type { Discovered } from "../../ops/discovery/discovered.ts";
import type { LedgerFact } from "../observe/ledger-tap.ts";
import type { ToldProofs } from "../tls/credentials.ts";

/**
 * Why a worker wants a backend to be probed at once. failed: a request to the backend failed. slow: the backend answers
 * PINGs, but does not answer requests. large-packets: a connection in use is silent while another connection to the
 * backend answers PINGs, so the path may lose large packets.
 */
export type Symptom = "failed" | "slow" | "large-packets";

/** What a worker reports to the process that judges the backends. */
export type RemoteJudge = {
  readonly report: (backend: string, evidence: Evidence) => void;
  /**
   * Reports that the worker itself has closed its last connection to the backend. This is no evidence about the
   * backend's health.
   */
  readonly unconnected: (backend: string) => void;
  readonly probe: (backend: string, symptom: Symptom) => void;
  /** `cluster`: the label of the cluster. */
  readonly tellLedger: (cluster: string, fact: LedgerFact) => void;
};

/** Callbacks of the clusters in a parent of workers. Backend names are unique across clusters. */
export type ParentHooks = {
  readonly onFacts: (backend: string, facts: BackendFacts, evidence: Evidence) => void;
  /** Called when the backends of a cluster may have changed. `cluster`: the cluster's label. */
  readonly onBackends: (cluster: string, found: readonly Discovered[]) => void;
  /** Called when canaries have shown something new about the backends of a cluster. `cluster`: the cluster's label. */
  readonly onProofs: (cluster: string, proofs: ToldProofs) => void;
};

/**
 * The other processes with a data path. A parent has callbacks that tell its workers what they must know. A worker has
 * its parent, which judges the backends for all processes.
 */
export type OtherProcesses =
  | { readonly parent: ParentHooks }
  /** `labels`: the label that the parent has given each cluster, by the cluster's name. */
  | { readonly judge: RemoteJudge; readonly labels: () => Readonly<Record<string, string>> };

/** Process number of the parent. Workers are numbered from 1. */
const ownNumber = 0;

/**
 * Milliseconds for which the parent remembers a worker's report that a backend may lose large packets. The probe that
 * the report causes takes less time.
 */
const symptomMs = 3000;

type HistoryEvidence = Extract<Evidence, { kind: "history" }>;

/**
 * By backend: the processes with proof that the history in the backend's etcd differs from the history that their
 * clients have seen, for example after a restore from a backup. Any process may refute the proof, because it compares
 * the backend's lists with those of a ready backend: the clients of the process with the proof may be gone.
 */
class HistoryProofs {
  readonly #provers = new Map<string, Set<number>>();

  learn(process: number, backend: string, evidence: HistoryEvidence): Evidence | undefined {
    const provers = this.#provers.get(backend) ?? new Set();
    this.#provers.set(backend, provers);
    if (evidence.isForked) {
      provers.add(process);
      return evidence;
    }
    provers.clear();
    return evidence;
  }

  accept(backend: string): void {
    this.#provers.delete(backend);
  }

  ended(process: number): readonly (readonly [backend: string, Evidence])[] {
    const refuted = Array.from(this.#provers).filter(
      ([, provers]) => provers.delete(process) && provers.size === 0,
    );
    // The ended process was the last one with proof, and its clients, which had seen the versions that the backend
    // lacks, are gone. If clients of another process have seen such versions, too, the lists of that process prove it
    // again.
    return refuted.map(([backend]) => [
      backend,
      { kind: "history", isForked: false, resource: "", version: "", seen: "gone" },
    ]);
  }

  reconcile(backends: readonly string[]): void {
    for (const backend of this.#provers.keys())
      if (!backends.includes(backend)) this.#provers.delete(backend);
  }
}

/** Held by the parent: the evidence of all processes about the backends of one cluster. */
export class SharedEvidence {
  readonly #states = new ConnectionStates();
  readonly #histories = new HistoryProofs();
  readonly #onFacts: (backend: string, facts: BackendFacts, evidence: Evidence) => void;
  /** The latest facts about each backend, for workers that start later. */
  readonly #latest = new Map<string, BackendFacts>();
  readonly #largePacketsAt = new Map<string, number>();

  constructor(onFacts: (backend: string, facts: BackendFacts, evidence: Evidence) => void) {
    this.#onFacts = onFacts;
  }

  /**
   * Adds one process's evidence. Returns the evidence if it changes what all processes together know; otherwise
   * undefined.
   */
  merged(backend: string, evidence: Evidence, process = ownNumber): Evidence | undefined {
    if (evidence.kind === "history") return this.#histories.learn(process, backend, evidence);
    return this.#states.learn(process, backend, evidence);
  }

  unconnected(backend: string, process = ownNumber): Evidence | undefined {
    return this.#states.unconnected(process, backend);
  }

  ended(process: number): readonly (readonly [backend: string, Evidence])[] {
    return [...this.#states.ended(process), ...this.#histories.ended(process)];
  }

  judged(backend: string, facts: BackendFacts, evidence: Evidence): void {
    this.#latest.set(backend, facts);
    if (!facts.isForked) this.#histories.accept(backend);
    this.#onFacts(backend, facts, evidence);
  }

  get latest(): ReadonlyMap<string, BackendFacts> {
    return this.#latest;
  }

  suspectLargePackets(backend: string, now: number): void {
    this.#largePacketsAt.set(backend, now);
  }

  /**
   * True if a worker has reported this lately, and a connection of some process still answers. If the backend's process
   * is frozen, a worker finds its connections silent one after another, and reports large packets before the last one.
   */
  mayLoseLargePackets(backend: string, now: number): boolean {
    const isRecent = now - (this.#largePacketsAt.get(backend) ?? Number.NEGATIVE_INFINITY) < symptomMs;
    return isRecent && this.#states.isAnswering(backend);
  }

  reconcile(backends: readonly string[]): void {
    this.#states.reconcile(backends);
    this.#histories.reconcile(backends);
    for (const known of [this.#latest, this.#largePacketsAt])
      for (const backend of known.keys()) if (!backends.includes(backend)) known.delete(backend);
  }
}

/** Returns the prober of a worker. It passes each request for a probe to the parent, which probes for all processes. */
export function remoteProber(
  clock: Clock,
  judge: Pick<RemoteJudge, "probe">,
  counts: ProbeCounts,
  backend: string,
): ReturnType<ConstructorParameters<typeof Probers>[0]> {
  const ask = (symptom: Symptom): (() => void) => {
    let askedAt = Number.NEGATIVE_INFINITY;
    // Each failed request asks for a probe. The parent is asked at most once per `urgentProbeMs`, because its prober
    // does not start probes more often.
    return () => {
      const now = clock.now();
      if (now - askedAt < healthLimits.urgentProbeMs) return;
      askedAt = now;
      judge.probe(backend, symptom);
    };
  };
  return {
    probeNow: ask("failed"),
    expediteProbe: ask("slow"),
    probeLargePackets: ask("large-packets"),
    counts,
    start() {},
    stop() {},
    configure() {},
  };
}
