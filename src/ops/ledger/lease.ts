/** One leader lease: its holder, and the clients that renewed it recently. All times are clock readings in ms. */
import { limits } from "../../base/limits.ts";
import type { Caller } from "./caller.ts";

export type LeaseName = {
  readonly resource: "leases" | "configmaps" | "endpoints";
  readonly namespace: string;
  readonly name: string;
};

export type Renewer = {
  readonly caller: Caller;
  /** Id of the client's HTTP/2 session, which distinguishes two processes at one address; 0: unknown. */
  readonly session: number;
  readonly holder: string;
  readonly since: number;
  lastAt: number;
  renewals: number;
};

/** A change of holder. `isReleased`: the previous holder had released the lease, or there was none. */
export type Handover = {
  readonly from: string;
  readonly to: string;
  readonly at: number;
  readonly isReleased: boolean;
};

/**
 * Why a renewal is suspect. contested: several clients renew the lease, or take it from each other. ghost: the holder's
 * pod was deleted, or the token is another pod's. unknown: the holder's identity and program are new.
 */
export type Verdict = "contested" | "ghost" | "unknown";

export type Judgement = {
  readonly verdict: Verdict;
  readonly detector: "alternation" | "takeover" | "turns" | "pod" | "deleted-pod" | "identity";
  readonly was: string;
  readonly valueMs: number;
  readonly limitMs: number;
  readonly reason: string;
};

export class Lease {
  readonly name: LeaseName;
  holder = "";
  /** How long a renewal is valid; 0: no write that passed through the proxy has stated it. */
  durationMs = 0;
  renewedAt = 0;
  heldSince = 0;
  renewals = 0;
  /** The clients that renewed the lease recently, the latest last. */
  renewers: readonly Renewer[] = [];
  handovers: readonly Handover[] = [];
  /** Identities and programs of the recent holders, in the format of `kindOf`. */
  knownKinds: readonly string[] = [];
  /**
   * Why a renewal was last found suspect; undefined: none was. Callers read this through `verdictAt`, which returns
   * undefined once `limits.leaseQuietMs` have passed since `judgedAt`.
   */
  judgement: Judgement | undefined;
  judgedAt = Number.NEGATIVE_INFINITY;
  reportedAt = Number.NEGATIVE_INFINITY;

  constructor(name: LeaseName) {
    this.name = name;
  }

  get text(): string {
    const { resource, namespace, name } = this.name;
    return `${resource} ${namespace}/${name}`;
  }

  verdictAt(now: number): Judgement | undefined {
    return now - this.judgedAt < limits.leaseQuietMs ? this.judgement : undefined;
  }
}

/** Returns the part of a workload's identity that stays the same when its pods are replaced. */
export function kindOf({ subject, agent }: Caller): string {
  return `${subject.name} ${agent}`;
}
