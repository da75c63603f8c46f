/**
 * The messages between a parent and its workers. All processes run the same program, so they trust each other's
 * messages after the first one, "hello". A *verdict* is the parent's decision about the health state of a backend.
 */
import type { JsonRecord } from "../../base/json.ts";
import type { Entry } from "../../events/journal.ts";
import type { BackendFacts } from "../../health/backend.ts";
import type { Evidence } from "../../health/evidence.ts";
import type { Config } from "../../ops/config/config.ts";
import type { Discovered } from "../../ops/discovery/discovered.ts";
import type { Symptom } from "../../proxy/cluster/shared-verdict.ts";
import type { DrainTimes } from "../../proxy/cluster/shutdown-drain.ts";
import type { LedgerFact } from "../../proxy/observe/ledger-tap.ts";
import type { ToldProofs } from "../../proxy/tls/credentials.ts";
import type { CountsByLimit } from "./limit-shares.ts";

/**
 * Must be incremented when a message changes. The program's files may be replaced by a new version while the parent
 * runs. A worker that starts from the new files would otherwise misread the messages.
 */
export const protocolVersion = 3;

/** The configuration in force, and the label of each cluster (`Cluster.label`) by the cluster's name. */
export type Setup = { readonly config: Config; readonly labels: Readonly<Record<string, string>> };

export type ToWorker =
  | ({ readonly kind: "start" } & Setup)
  | ({ readonly kind: "config"; readonly id: number } & Setup)
  /** The backends that discovery has found for the cluster with this label. */
  | { readonly kind: "found"; readonly cluster: string; readonly backends: readonly Discovered[] }
  /** Which backends of this cluster take the identities that the proxy asserts. */
  | { readonly kind: "proofs"; readonly cluster: string; readonly proofs: ToldProofs }
  | {
      readonly kind: "verdict";
      readonly backend: string;
      /** The Kubernetes version that the backend reports; "": unknown. */
      readonly version: string;
      readonly facts: BackendFacts;
      readonly evidence: Evidence;
    }
  /** The request limits that operators have set, as JSON (`OperatorLimits.state`). */
  | { readonly kind: "limits"; readonly state: string }
  /**
   * The worker's share of each limit, by the limit's key (`limitKey`), and the number of replicas that share limits.
   */
  | {
      readonly kind: "shares";
      readonly shares: Readonly<Record<string, number>>;
      readonly replicas: number;
    }
  | { readonly kind: "ask"; readonly id: number; readonly question: Question }
  | { readonly kind: "drain"; readonly times: DrainTimes };

/**
 * What the parent asks a worker; admin/workers computes the answers. The question "snapshot" is asked every second, so
 * that its answer also shows that the worker does not hang.
 */
export type Question =
  | { readonly of: "snapshot" }
  /** Metrics of the worker's process, such as CPU time and memory. */
  | { readonly of: "process" }
  /** What the history records of the worker's requests (ops/admin/history/recorded.ts). */
  | { readonly of: "recorded" }
  | { readonly of: "page"; readonly list: string; readonly query: string }
  | { readonly of: "watch"; readonly id: string }
  | { readonly of: "backends" }
  | { readonly of: "move"; readonly id: string };

export type ToParent =
  /** The first message. `version`: `protocolVersion` of the worker's program. */
  | { readonly kind: "hello"; readonly version: number }
  | { readonly kind: "ready" }
  /** The worker could not start. Its process ends. */
  | { readonly kind: "failed"; readonly message: string }
  /** The worker has begun to drain because of a fault of its own, and takes no more sockets. */
  | { readonly kind: "leaving" }
  | { readonly kind: "evidence"; readonly backend: string; readonly evidence: Evidence }
  | { readonly kind: "unconnected"; readonly backend: string }
  | { readonly kind: "probe"; readonly backend: string; readonly symptom: Symptom }
  | { readonly kind: "ledger"; readonly cluster: string; readonly fact: LedgerFact }
  /** Journal entries. `dropped`: number of entries that the worker has dropped since the last message of this kind. */
  | { readonly kind: "entries"; readonly entries: readonly Entry[]; readonly dropped: number }
  | ({ readonly kind: "load" } & WorkerLoad)
  | { readonly kind: "answer"; readonly id: number; readonly answer: unknown };

export type WorkerLoad = {
  /** Number of client sockets. */
  readonly sockets: number;
  /**
   * Number of HTTP/2 (`h2`) and HTTP/1.1 (`h1`) sessions. A socket has no session during the TLS handshake, or if it is
   * a passthrough connection.
   */
  readonly h2: number;
  readonly h1: number;
  /** Number of sockets that have arrived from the parent since the worker's start. */
  readonly received: number;
  /** Number of requests and tunnels in progress. */
  readonly requests: number;
  /** Why the worker takes no new clients; "": it takes them. */
  readonly complaint: string;
  readonly limits: CountsByLimit;
};

/** True for any message: a worker whose program has other messages is refused at its "hello". */
export function isToParent(message: JsonRecord): message is ToParent & JsonRecord {
  return typeof message["kind"] === "string";
}

/** True for any message, because a worker's parent has started it. */
export function isToWorker(message: JsonRecord): message is ToWorker & JsonRecord {
  return typeof message["kind"] === "string";
}

/** Fields of `BackendFacts` that hold clock readings. 0 and -1 stand for "never". */
const readings = [
  "readinessAt",
  "forbiddenSince",
  "hungAt",
  "doubtedAt",
  "answeredAt",
  "arrivedAt",
  "packetsLostAt",
  "answersAgainAt",
  "risingSince",
  "ejectedAt",
] as const satisfies readonly (keyof BackendFacts)[];

/**
 * The reading that stands for every moment before the start of the receiving process. On that process's clock, such a
 * moment would be 0 or negative, and 0 means "never".
 */
const earliest = 0.001;

function shiftedReading(at: number, by: number): number {
  return at <= 0 ? at : Math.max(earliest, at + by);
}

/** Returns the facts with each clock reading moved forward by `by` ms, or back if `by` is negative. */
export function shiftedFacts(facts: BackendFacts, by: number): BackendFacts {
  const shifted: Record<string, number> = {};
  for (const name of readings) shifted[name] = shiftedReading(facts[name], by);
  return { ...facts, ...shifted };
}

/**
 * Returns the evidence with its clock reading, if it has one, moved forward by `by` ms, or back if `by` is negative.
 */
export function shiftedEvidence(evidence: Evidence, by: number): Evidence {
  return evidence.kind === "fresh"
    ? { ...evidence, begunAt: shiftedReading(evidence.begunAt, by) }
    : evidence;
}

/**
 * Returns how many milliseconds the machine's monotonic clock is ahead of this process's clock. `now`: a reading of
 * this process's clock. `monotonicNs`: a reading of the machine's clock at the same moment. Messages contain only
 * readings of the machine's clock, because all processes share it.
 */
export function machineClockOffset(now: number, monotonicNs: bigint = process.hrtime.bigint()): number {
  return Number(monotonicNs) / 1e6 - now;
}
