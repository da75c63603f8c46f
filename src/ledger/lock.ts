/** One leader lock: who holds it, and who has renewed it lately, from where. Times are clock readings. */
import { limits } from "../base/limits.ts";
import type { Caller } from "./caller.ts";

export type LockName = {
  readonly resource: "leases" | "configmaps" | "endpoints";
  readonly namespace: string;
  readonly name: string;
};

/** One client that renews it. */
export type Renewer = {
  readonly caller: Caller;
  /** Of an HTTP/2 client its session: one process has one, whatever stands between it and us. 0: not told apart. */
  readonly session: number;
  readonly holder: string;
  readonly since: number;
  lastAt: number;
  renewals: number;
};

/** A change of holder; `isReleased`: the one before had let go, or the lock was new. */
export type Handover = {
  readonly from: string;
  readonly to: string;
  readonly at: number;
  readonly isReleased: boolean;
};

export type Verdict = "contested" | "ghost" | "unknown";

/** Why something is not as it should be. */
export type Judgement = {
  readonly verdict: Verdict;
  readonly detector: "alternation" | "takeover" | "turns" | "pod" | "deleted-pod" | "identity";
  readonly was: string;
  readonly valueMs: number;
  readonly limitMs: number;
  readonly reason: string;
};

export class Lock {
  readonly name: LockName;
  holder = "";
  durationMs = 0;
  renewedAt = 0;
  /** Since when this holder has it. */
  heldSince = 0;
  renewals = 0;
  /** Who renewed it lately; the last one last. */
  renewers: readonly Renewer[] = [];
  handovers: readonly Handover[] = [];
  /** Identities and programs of those that have held it, as `kindOf` writes them. */
  knownKinds: readonly string[] = [];
  /** The latest, and when: it is as it was until it is quiet. */
  judgement: Judgement | undefined;
  judgedAt = Number.NEGATIVE_INFINITY;
  toldAt = Number.NEGATIVE_INFINITY;

  constructor(name: LockName) {
    this.name = name;
  }

  get text(): string {
    const { resource, namespace, name } = this.name;
    return `${resource} ${namespace}/${name}`;
  }

  /** Undefined when all is as it should be, by now. */
  verdictAt(now: number): Judgement | undefined {
    return now - this.judgedAt < limits.lockQuietMs ? this.judgement : undefined;
  }
}

/** What stays the same of a workload when its pods are replaced. */
export function kindOf({ subject, agent }: Caller): string {
  return `${subject.name} ${agent}`;
}
