/**
 * The facts about one backend, and the verdict that follows from them. Both steps are pure: evidence changes the facts
 * (`learnt`), and the first matching row of `verdicts` gives the verdict. Only recovery is damped: a suspect or dead
 * backend becomes ready after several answered probes in a row, more after each fall, so that a flapping backend
 * stays suspect. If no other backend is ready, a backend that answers becomes ready at once.
 *
 *              upstream connections answer                 a row of `verdicts` says so
 *     unknown ──────────────▶ ready ─────────────▶ suspect · draining · dead
 *                               ▲                     │          │       │
 *                               └── answered probes ──┴──────────┘       │ a socket answers
 *                                                     ▲                  │
 *                                                  suspect ◀─────────────┘
 */
import type { Evidence, Fresh, Readiness, ReadyAnswer } from "./evidence.ts";
import { healthLimits } from "./limits.ts";

export const backendStates = ["unknown", "ready", "suspect", "dead", "draining"] as const;
export type BackendState = (typeof backendStates)[number];

export type BackendView = {
  readonly name: string;
  readonly state: BackendState;
  readonly since: number;
  /** True while neither an upstream connection nor a fresh socket to the backend gets an answer; absent: false. */
  readonly isMute?: boolean;
};
export const connectionStates = ["none", "answering", "silent", "going", "left", "lost"] as const;
export type ConnectionState = (typeof connectionStates)[number];
/** Everything known about one backend. Every time is a clock reading. */
export type BackendFacts = {
  readonly state: BackendState;
  /**
   * The state of all upstream connections. going: all got GOAWAY; left: all ended after GOAWAY; lost: all ended
   * without.
   */
  readonly connections: ConnectionState;
  /** The result of the latest fresh socket, if it was begun after the upstream connections fell silent or were lost. */
  readonly fresh: "none" | "answer" | "refusal" | "silence";
  /** True if the backend's certificate has the wrong name or no trusted issuer. */
  readonly isUntrusted: boolean;
  /** True while an operator drains the backend, whatever /readyz reports. */
  readonly isDrained: boolean;
  /** True if the backend's etcd has another history than clients have seen, so that its answers are wrong for them. */
  readonly isForked: boolean;
  readonly readiness: Readiness;
  /** When /readyz last answered 200 or 5xx, which tells whether the backend is ready; -1: never. */
  readonly readinessAt: number;
  /** Since when /readyz has answered 403; -1: it answers something else. */
  readonly forbiddenSince: number;
  readonly reads: "answering" | "hanging";
  /** When reads that need etcd were last found to hang; 0: never. */
  readonly hungAt: number;
  /** When the upstream connections last fell silent or were lost; 0: never. */
  readonly doubtedAt: number;
  /** When the latest of the fresh sockets that were answered was begun; -1: never. */
  readonly answeredAt: number;
  /** When the latest answer on a fresh socket arrived; -1: never. */
  readonly arrivedAt: number;
  /** When the backend last began to answer, for the first time or after it had been mute; -1: never. */
  readonly answersAgainAt: number;
  /** Number of fresh sockets in a row that got no answer. */
  readonly consecutiveTimeouts: number;
  /** Number of probes answered in a row while the backend recovers. */
  readonly consecutiveSuccesses: number;
  /** When the first of `consecutiveSuccesses` was counted; 0: never. */
  readonly risingSince: number;
  /** Number of falls from ready to suspect or dead, each within `strikeMs` after the one before. */
  readonly ejections: number;
  /** When the backend last changed from ready to suspect or dead; 0: never. */
  readonly ejectedAt: number;
};

/** The rules of the verdict, which differ without probes. */
export type Rules = {
  /** Probes answered in a row until a backend that fell once is ready again; doubles with each fall; 0: ready at once. */
  readonly rise: number;
  /** True if only a failed fresh socket proves a backend dead; false where no probes run. */
  readonly needsProof: boolean;
};

export const noFacts: BackendFacts = {
  state: "unknown",
  connections: "none",
  fresh: "none",
  isUntrusted: false,
  isDrained: false,
  isForked: false,
  readiness: "unknown",
  readinessAt: -1,
  forbiddenSince: -1,
  reads: "answering",
  hungAt: 0,
  doubtedAt: 0,
  answeredAt: -1,
  arrivedAt: -1,
  answersAgainAt: -1,
  consecutiveTimeouts: 0,
  consecutiveSuccesses: 0,
  risingSince: 0,
  ejections: 0,
  ejectedAt: 0,
};

export type Facts = Pick<
  BackendFacts,
  "connections" | "fresh" | "isUntrusted" | "isDrained" | "isForked" | "readiness" | "reads"
>;

type VerdictRow = {
  readonly connections?: readonly ConnectionState[];
  readonly fresh?: readonly BackendFacts["fresh"][];
  readonly isUntrusted?: boolean;
  readonly isDrained?: boolean;
  readonly isForked?: boolean;
  readonly readiness?: readonly Readiness[];
  readonly reads?: BackendFacts["reads"];
  readonly verdict: BackendState;
};

/** The verdict table. The first matching row decides. A fact that a row does not name may have any value. */
export const verdicts: readonly VerdictRow[] = [
  // A forked backend gets no requests: reads would show another past, and writes would be lost (D13).
  { isForked: true, verdict: "dead" },
  // The backend has no upstream connection, and refuses or ignores new sockets.
  { connections: ["left", "lost"], fresh: ["refusal", "silence"], verdict: "dead" },
  // The backend has announced its shutdown, on /readyz or with GOAWAY, so its remaining work may finish (D6).
  { connections: ["left", "lost"], readiness: ["shutdown"], verdict: "draining" },
  { connections: ["left"], fresh: ["none"], verdict: "draining" },
  { connections: ["left", "lost"], isDrained: true, verdict: "draining" },
  // An answered probe is not enough for ready: an upstream connection must be open, too.
  { connections: ["silent", "left", "lost"], verdict: "suspect" },
  // The certificate does not prove the backend's identity: new work goes elsewhere, existing work continues.
  { isUntrusted: true, verdict: "suspect" },
  { readiness: ["shutdown"], verdict: "draining" },
  // The backend answers PINGs, but not reads, for example because its path to etcd is broken.
  { readiness: ["failing", "hanging"], verdict: "suspect" },
  { reads: "hanging", verdict: "suspect" },
  { isDrained: true, verdict: "draining" },
  { connections: ["going"], verdict: "draining" },
  { connections: ["answering"], verdict: "ready" },
  { verdict: "unknown" },
];

/** Returns the verdict on these facts, before recovery is damped. Pure. */
export function verdictOf(facts: Facts, needsProof = true): BackendState {
  // Without probes, a backend that was lost is dead. One that left with GOAWAY may be back at the next dial.
  if (facts.connections === "lost" && facts.fresh === "none" && !needsProof) return "dead";
  return verdicts.find((row) => fits(row, facts))?.verdict ?? "unknown";
}

/** The facts of which a row names one value instead of a list. */
const single = ["isUntrusted", "isDrained", "isForked", "reads"] as const;

function fits(row: VerdictRow, facts: Facts): boolean {
  const { connections, fresh, readiness } = row;
  if (connections !== undefined && !connections.includes(facts.connections)) return false;
  if (fresh !== undefined && !fresh.includes(facts.fresh)) return false;
  for (const name of single) if (row[name] !== undefined && row[name] !== facts[name]) return false;
  return readiness === undefined || readiness.includes(facts.readiness);
}

/** Returns the facts after one more piece of evidence, which arrived at the clock reading `at`. Pure. */
export function judge(before: BackendFacts, evidence: Evidence, at: number, rules: Rules): BackendFacts {
  const latest = learnt(before, evidence, at, rules);
  const facts = !isAnswering(before) && isAnswering(latest) ? { ...latest, answersAgainAt: at } : latest;
  const verdict = verdictOf(facts, rules.needsProof);
  if (verdict === "ready") return risen(facts, evidence, at, rules);
  const isFall = before.state === "ready" && (verdict === "suspect" || verdict === "dead");
  const fallen = { ...facts, state: verdict, consecutiveSuccesses: 0 };
  if (!isFall) return fallen;
  const isSame = before.ejections > 0 && at - before.ejectedAt <= healthLimits.strikeMs;
  return { ...fallen, ejections: isSame ? before.ejections + 1 : 1, ejectedAt: at };
}

/** Damps recovery: the backend stays suspect until it has answered enough probes. */
function risen(facts: BackendFacts, evidence: Evidence, at: number, rules: Rules): BackendFacts {
  if (facts.state !== "suspect" && facts.state !== "dead")
    return { ...facts, state: "ready", consecutiveSuccesses: 0 };
  // Called only if the facts mean ready, so every answer of /readyz is a success.
  const consecutiveSuccesses = facts.consecutiveSuccesses + (evidence.kind === "readyz" ? 1 : 0);
  const risingSince = facts.consecutiveSuccesses === 0 ? at : facts.risingSince;
  const isLong = consecutiveSuccesses > 0 && at - risingSince >= healthLimits.riseMs;
  if (consecutiveSuccesses >= neededSuccesses(facts, rules) || isLong || evidence.kind === "alone")
    return { ...facts, state: "ready", consecutiveSuccesses: 0 };
  return { ...facts, state: "suspect", consecutiveSuccesses, risingSince };
}

/** Returns how many probes must be answered in a row: 4, 8, 16, 32, then 64, by the number of falls. */
export function neededSuccesses({ ejections }: BackendFacts, { rise }: Rules): number {
  return rise * 2 ** Math.min(4, Math.max(0, ejections - 1));
}

/** True if the backend must be probed several times a second, because it is silent, unreachable or recovering. */
export function isUrgent(facts: BackendFacts): boolean {
  return isSilent(facts) || isUnreached(facts) || (facts.state === "suspect" && !needsAnother(facts));
}

/** True if the backend has no upstream connection and its fresh sockets fail, so that only a probe can find it again. */
function isUnreached({ connections, fresh }: BackendFacts): boolean {
  return connections === "none" && (fresh === "silence" || fresh === "refusal");
}

function isAnswering(facts: BackendFacts): boolean {
  return facts.fresh === "answer" || (facts.connections !== "none" && !isSilent(facts));
}

/** True if no upstream connection to the backend answers. */
export function isSilent({ connections }: BackendFacts): boolean {
  return connections === "silent" || connections === "left" || connections === "lost";
}

/** True if no upstream connection to the backend answers, and no fresh socket has been answered since. */
export function isMute(facts: BackendFacts): boolean {
  return isSilent(facts) && facts.fresh !== "answer";
}

/**
 * True if no backend answers and at least one ignores new sockets instead of refusing them, so that our own network is
 * the most likely cause (D14). A backend that has never answered does not count, because no work is under way there.
 */
export function areAllSilent(all: readonly BackendFacts[]): boolean {
  const isUnused = ({ connections, fresh }: BackendFacts): boolean =>
    connections === "none" && fresh !== "answer";
  const isCutOff = (facts: BackendFacts): boolean =>
    (isMute(facts) || isUnreached(facts)) &&
    facts.answeredAt >= 0 &&
    facts.fresh !== "refusal" &&
    facts.connections !== "left";
  return all.every((facts) => isMute(facts) || isUnused(facts)) && all.some(isCutOff);
}

/** True if the backend is suspect for a reason that still holds, so that waiting requests should go elsewhere. */
export function needsAnother(facts: BackendFacts): boolean {
  return facts.state === "suspect" && verdictOf(facts) !== "ready";
}

/**
 * True if the backend is dead and ignores fresh sockets: work on connections without PINGs (exec, passthrough) is lost.
 * If it refuses them, its kernel is alive and closes the connections of dead processes itself.
 */
export function isSilentlyDead(facts: BackendFacts): boolean {
  return facts.state === "dead" && facts.fresh === "silence";
}

/** Returns the facts after the evidence, with the old verdict. */
function learnt(facts: BackendFacts, evidence: Evidence, at: number, rules: Rules): BackendFacts {
  return isOfConnections(evidence)
    ? ofConnections(facts, evidence, at)
    : ofAnswers(facts, evidence, at, rules);
}

type OfConnections = Extract<Evidence, { kind: `connection${string}` }>;

function isOfConnections(evidence: Evidence): evidence is OfConnections {
  return evidence.kind.startsWith("connection");
}

function ofConnections(facts: BackendFacts, evidence: OfConnections, at: number): BackendFacts {
  switch (evidence.kind) {
    case "connection-opened":
      return {
        ...opened(facts),
        connections: "answering",
        fresh: "answer",
        isUntrusted: false,
        answeredAt: at,
        arrivedAt: at,
      };
    case "connections-answer":
      return { ...facts, connections: "answering" };
    case "connections-going":
      return { ...facts, connections: "going" };
    case "connections-silent":
      return doubted(facts, "silent", at);
    case "connections-lost":
      return doubted(facts, "lost", at);
    default:
      evidence satisfies never;
      return facts;
  }
}

/** Clears a "hanging" that was concluded from unanswered sockets, but not one of /readyz itself. */
function opened(facts: BackendFacts): BackendFacts {
  const readiness =
    facts.consecutiveTimeouts > 1 && facts.readiness === "hanging" ? "unknown" : facts.readiness;
  return { ...facts, readiness, consecutiveTimeouts: 0 };
}

function ofAnswers(
  facts: BackendFacts,
  evidence: Exclude<Evidence, OfConnections>,
  at: number,
  rules: Rules,
): BackendFacts {
  switch (evidence.kind) {
    case "fresh":
      return met(facts, evidence, at);
    case "readyz":
      return read(asked(facts, evidence.readiness, at), at);
    case "packets-lost":
      // Holds until the next probe is answered, because that takes large packets, too.
      return { ...facts, readiness: "hanging" };
    case "reads-hanging":
      // Only a probe can end "hanging", so without probes the backend would stay suspect for ever.
      return rules.needsProof ? { ...facts, reads: "hanging", hungAt: at } : facts;
    case "reads-answer":
      return { ...facts, reads: "answering" };
    case "drain":
      return { ...facts, isDrained: evidence.isDrained };
    case "history":
      return { ...facts, isForked: evidence.isForked };
    case "alone":
      return facts;
    default:
      evidence satisfies never;
      return facts;
  }
}

function asked(facts: BackendFacts, readiness: ReadyAnswer, at: number): BackendFacts {
  if (readiness === "unknown" || readiness === "hanging") return { ...facts, readiness };
  if (readiness !== "forbidden") return { ...facts, readiness, readinessAt: at, forbiddenSince: -1 };
  const since = facts.forbiddenSince < 0 ? at : facts.forbiddenSince;
  // This 403 is no sign of readiness: a starting apiserver answers 403 to all clients until it has loaded its RBAC.
  const mayBoot = facts.readinessAt >= 0 && (facts.state !== "ready" || facts.doubtedAt > facts.readinessAt);
  if (mayBoot && at - since < healthLimits.forbiddenMs)
    return { ...facts, readiness: "failing", forbiddenSince: since };
  // The probe has lost its permission, so the backend counts as one that never reported readiness.
  return { ...facts, readiness: "unknown", readinessAt: -1, forbiddenSince: -1 };
}

/** Ends hanging reads if /readyz finds nothing wrong some time later: the backend gets no reads that could show it. */
function read(facts: BackendFacts, at: number): BackendFacts {
  const isGood = facts.readiness === "ready" || facts.readiness === "unknown";
  return isGood && at - facts.hungAt >= healthLimits.hungReadsMs ? { ...facts, reads: "answering" } : facts;
}

/**
 * Forgets hanging reads, which the silence explains. If silent connections are then lost, the results of fresh sockets
 * since the silence began stay valid.
 */
function doubted(facts: BackendFacts, connections: "silent" | "lost", at: number): BackendFacts {
  const isLeaving = facts.connections === "going" || facts.connections === "left";
  const now = connections === "lost" && isLeaving ? "left" : connections;
  const doubt = { ...facts, connections: now, reads: "answering" } as const;
  return isSilent(facts) ? doubt : { ...doubt, fresh: "none", doubtedAt: at };
}

/**
 * True if a failed fresh socket proves nothing, because a socket that began later was answered. For silence, an answer
 * that arrived later is enough: the SYN was lost in an outage that is over.
 */
export function isOvertaken(
  { answeredAt, arrivedAt }: BackendFacts,
  { met: what, begunAt }: Pick<Fresh, "met" | "begunAt">,
): boolean {
  if (what === "answer" || what === "untrusted") return false;
  return begunAt <= (what === "silence" ? arrivedAt : answeredAt);
}

function met(facts: BackendFacts, evidence: Fresh, at: number): BackendFacts {
  const { met: what, begunAt } = evidence;
  if (what === "answer" || what === "untrusted") {
    const isUntrusted = what === "untrusted";
    const fresh = begunAt >= facts.doubtedAt ? "answer" : facts.fresh;
    const answeredAt = Math.max(facts.answeredAt, begunAt);
    return { ...facts, fresh, isUntrusted, answeredAt, arrivedAt: at, consecutiveTimeouts: 0 };
  }
  if (begunAt < facts.doubtedAt || isOvertaken(facts, evidence)) return facts;
  const consecutiveTimeouts = what === "silence" ? facts.consecutiveTimeouts + 1 : 0;
  // One lost SYN proves nothing. Two unanswered sockets in a row mean that the server accepts no new ones.
  return {
    ...facts,
    fresh: what,
    consecutiveTimeouts,
    readiness: consecutiveTimeouts > 1 ? "hanging" : facts.readiness,
  };
}
