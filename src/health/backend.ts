/**
 * The facts about one backend, and its verdict: the health state that follows from the facts. Both steps are pure:
 * evidence changes the facts (`learnt`), and the first matching row of `verdicts` gives the verdict. Only recovery is
 * delayed: a suspect or dead backend must answer several consecutive probes, twice as many after each repeated failure,
 * so that a flapping backend stays suspect. If no other backend is ready, a recovering one becomes ready at once.
 *
 *              upstream connections answer                 a row of `verdicts` says so
 *     unknown ──────────────▶ ready ─────────────▶ suspect · draining · dead
 *                               ▲                     │          │       │
 *                               └── answered probes ──┴──────────┘       │ a new socket is answered
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
  /** True while the backend answers neither on an upstream connection nor on a new socket; default: false. */
  readonly isMute?: boolean;
};
export const connectionStates = ["none", "answering", "silent", "going", "left", "lost"] as const;
export type ConnectionState = (typeof connectionStates)[number];
/** All facts about one backend. */
export type BackendFacts = {
  readonly state: BackendState;
  /**
   * State of all upstream connections together. none: none was opened yet. answering: at least one answers PINGs.
   * silent: none answers PINGs. going: all have received GOAWAY. left: all were closed after GOAWAY. lost: all were
   * closed without GOAWAY.
   */
  readonly connections: ConnectionState;
  /** Result of the latest socket opened since the upstream connections became silent or lost; none: no result yet. */
  readonly fresh: "none" | "answer" | "refusal" | "silence";
  /** True if the latest TLS handshake showed a certificate with a wrong name or without a trusted issuer. */
  readonly isUntrusted: boolean;
  /** True while an operator drains the backend. /readyz does not change it. */
  readonly isDrained: boolean;
  /**
   * True if the backend's etcd has a history that differs from the one that clients have seen: its answers would be
   * wrong.
   */
  readonly isForked: boolean;
  readonly readiness: Readiness;
  /** Clock reading (ms) of the latest 200 or 5xx of /readyz, the only answers that report readiness; -1: none. */
  readonly readinessAt: number;
  /** Clock reading (ms) since which 403s of /readyz mean that the apiserver is still starting; -1: they do not. */
  readonly forbiddenSince: number;
  /** hanging: other backends answer reads that this backend leaves unanswered. */
  readonly reads: "answering" | "hanging";
  /** Clock reading (ms) at which the proxy last found hanging reads; 0: never. */
  readonly hungAt: number;
  /** Clock reading (ms) at which the upstream connections last became silent or lost; 0: never. */
  readonly doubtedAt: number;
  /** Clock reading (ms) at which the newest answered socket was opened; -1: none was answered. */
  readonly answeredAt: number;
  /** Clock reading (ms) at which the latest answer on a new socket arrived; -1: never. */
  readonly arrivedAt: number;
  /** Clock reading (ms) at which the proxy last found that only large packets are lost; -1: never. */
  readonly packetsLostAt: number;
  /** Clock reading (ms) at which the backend last changed from silent to answering; -1: never. */
  readonly answersAgainAt: number;
  /** Number of consecutive new sockets that got no answer. */
  readonly consecutiveTimeouts: number;
  /**
   * Number of consecutive answered probes since the backend failed. When it reaches `neededSuccesses`, the backend
   * becomes ready.
   */
  readonly consecutiveSuccesses: number;
  /** Clock reading (ms) of the first probe that `consecutiveSuccesses` counts; 0: never. */
  readonly risingSince: number;
  /**
   * Number of repeated failures, that is, changes from ready to suspect or dead. If the previous failure is more than
   * `strikeMs` ago, the count starts again at 1.
   */
  readonly ejections: number;
  /** Clock reading (ms) at which the backend last changed from ready to suspect or dead; 0: never. */
  readonly ejectedAt: number;
};

export type Rules = {
  /**
   * Number of consecutive probes that a failed backend must answer to become ready. Each repeated failure doubles the
   * number. 0: none.
   */
  readonly rise: number;
  /**
   * True if a backend is dead only after a new socket to it has failed. False if there are no probes, because the
   * probes open these sockets.
   */
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
  packetsLostAt: -1,
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

/** The first row that matches the facts gives the verdict. A fact that a row omits may have any value. */
export const verdicts: readonly VerdictRow[] = [
  // A backend with another etcd history gets no requests: reads would be wrong, and writes would be lost (D13).
  { isForked: true, verdict: "dead" },
  // The backend has no upstream connection, and rejects or ignores new sockets.
  { connections: ["left", "lost"], fresh: ["refusal", "silence"], verdict: "dead" },
  // The backend has announced its shutdown on /readyz or with GOAWAY, or an operator drains it. It may finish its open
  // requests (D6).
  { connections: ["left", "lost"], readiness: ["shutdown"], verdict: "draining" },
  { connections: ["left"], fresh: ["none"], verdict: "draining" },
  { connections: ["left", "lost"], isDrained: true, verdict: "draining" },
  // Answered probes alone do not make a backend ready: requests need an upstream connection.
  { connections: ["silent", "left", "lost"], verdict: "suspect" },
  // The certificate does not prove the backend's identity. The backend gets no new requests, but open ones continue.
  { isUntrusted: true, verdict: "suspect" },
  { readiness: ["shutdown"], verdict: "draining" },
  // The backend answers PINGs, but is not ready or does not answer reads, for example because it cannot reach etcd.
  { readiness: ["failing", "hanging"], verdict: "suspect" },
  { reads: "hanging", verdict: "suspect" },
  { isDrained: true, verdict: "draining" },
  { connections: ["going"], verdict: "draining" },
  { connections: ["answering"], verdict: "ready" },
  { verdict: "unknown" },
];

/**
 * Returns the state that these facts imply now. `judge` may still keep a failed backend suspect until it has answered
 * several probes. `needsProof`: see `Rules`.
 */
export function verdictOf(facts: Facts, needsProof = true): BackendState {
  // Without probes, a backend that has lost all connections is dead. After GOAWAY ("left") it is not: a new dial may
  // succeed.
  if (facts.connections === "lost" && facts.fresh === "none" && !needsProof) return "dead";
  return verdicts.find((row) => fits(row, facts))?.verdict ?? "unknown";
}

/** The facts for which a row of `verdicts` has a single value. For all other facts, a row has a list of values. */
const single = ["isUntrusted", "isDrained", "isForked", "reads"] as const;

function fits(row: VerdictRow, facts: Facts): boolean {
  const { connections, fresh, readiness } = row;
  if (connections !== undefined && !connections.includes(facts.connections)) return false;
  if (fresh !== undefined && !fresh.includes(facts.fresh)) return false;
  for (const name of single) if (row[name] !== undefined && row[name] !== facts[name]) return false;
  return readiness === undefined || readiness.includes(facts.readiness);
}

/** Returns the facts after new evidence, which arrived at the clock reading `at`. No I/O. */
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

/** Called if the facts imply ready. Keeps a failed backend suspect until it has answered enough probes in a row. */
function risen(facts: BackendFacts, evidence: Evidence, at: number, rules: Rules): BackendFacts {
  if (facts.state !== "suspect" && facts.state !== "dead")
    return { ...facts, state: "ready", consecutiveSuccesses: 0 };
  // Every answer of /readyz that reaches this line is a success: after an answer that reported a problem, the facts
  // would not imply "ready", and this function would not be called.
  const consecutiveSuccesses = facts.consecutiveSuccesses + (evidence.kind === "readyz" ? 1 : 0);
  const risingSince = facts.consecutiveSuccesses === 0 ? at : facts.risingSince;
  const isLong = consecutiveSuccesses > 0 && at - risingSince >= healthLimits.riseMs;
  if (consecutiveSuccesses >= neededSuccesses(facts, rules) || isLong || evidence.kind === "alone")
    return { ...facts, state: "ready", consecutiveSuccesses: 0 };
  return { ...facts, state: "suspect", consecutiveSuccesses, risingSince };
}

/**
 * Returns the facts that apply within a process that does not judge the backends itself. `verdict`: the facts from the
 * process that judges. `own`: the state of this process's own connections to the backend. If all of these are silent or
 * lost, a ready backend becomes suspect within this process, even if other processes have working connections to it.
 */
export function seenWith(verdict: BackendFacts, own: ConnectionState): BackendFacts {
  if (isSilent(verdict) || !isSilent({ connections: own })) return verdict;
  const state = verdict.state === "ready" ? "suspect" : verdict.state;
  return { ...verdict, connections: own, state };
}

/**
 * Returns how many consecutive probes a failed backend must answer to become ready: `rise`, which is 4 by default, and
 * after repeated failures 8, 16, 32 and 64.
 */
export function neededSuccesses({ ejections }: BackendFacts, { rise }: Rules): number {
  return rise * 2 ** Math.min(4, Math.max(0, ejections - 1));
}

/** True if the backend must be probed several times a second: it is silent, unreachable or recovering. */
export function isUrgent(facts: BackendFacts): boolean {
  return isSilent(facts) || isUnreached(facts) || (facts.state === "suspect" && !needsAnother(facts));
}

/** True if the backend never had an upstream connection and new sockets fail: only a probe can show its recovery. */
function isUnreached({ connections, fresh }: BackendFacts): boolean {
  return connections === "none" && (fresh === "silence" || fresh === "refusal");
}

function isAnswering(facts: BackendFacts): boolean {
  return facts.fresh === "answer" || (facts.connections !== "none" && !isSilent(facts));
}

/** True if no upstream connection to the backend answers, or all are closed. */
export function isSilent({ connections }: Pick<BackendFacts, "connections">): boolean {
  return connections === "silent" || connections === "left" || connections === "lost";
}

/**
 * True if no upstream connection to the backend answers, and no socket opened since these connections fell silent was
 * answered.
 */
export function isMute(facts: BackendFacts): boolean {
  return isSilent(facts) && facts.fresh !== "answer";
}

/**
 * True if no backend answers and at least one of them ignores new sockets. Then the proxy's network is the most likely
 * cause (D14). A backend to which no upstream connection was opened counts as answering only if it has answered a
 * socket since the other backends fell silent, because an older answer says nothing about the network now. Otherwise
 * the result does not depend on it: it has no open requests.
 */
export function areAllSilent(all: readonly BackendFacts[]): boolean {
  const doubtedAt = Math.max(...all.filter(isMute).map((facts) => facts.doubtedAt));
  const isUnused = ({ connections, fresh, answeredAt }: BackendFacts): boolean =>
    connections === "none" && (fresh !== "answer" || answeredAt < doubtedAt);
  const isCutOff = (facts: BackendFacts): boolean =>
    (isMute(facts) || isUnreached(facts)) &&
    facts.answeredAt >= 0 &&
    facts.fresh !== "refusal" &&
    facts.connections !== "left";
  return all.every((facts) => isMute(facts) || isUnused(facts)) && all.some(isCutOff);
}

/** True if the backend is suspect and not recovering yet. Requests that wait for it should go to another backend. */
export function needsAnother(facts: BackendFacts): boolean {
  return facts.state === "suspect" && verdictOf(facts) !== "ready";
}

/**
 * True if the backend is dead and ignores new sockets, so that its connections without PINGs (exec, passthrough) are
 * lost. A kernel that rejects new sockets is alive, and itself closes the connections of a process that has ended.
 */
export function isSilentlyDead(facts: BackendFacts): boolean {
  return facts.state === "dead" && facts.fresh === "silence";
}

/** Returns the facts with the evidence added, but with the previous state. */
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

/** Clears the readiness "hanging" if unanswered new sockets caused it, but not if an unanswered /readyz did. */
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
      // "hanging" stays until a probe is answered. The answer to a probe takes large packets, so it shows that these
      // pass again.
      return { ...facts, readiness: "hanging", packetsLostAt: at, fresh: noSilence(facts.fresh) };
    case "reads-hanging":
      // Ignored without probes, because only a probe can end "hanging". Without one, the backend would never stop being
      // suspect.
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

/** While small packets pass, an unanswered socket does not show that the backend is silent. */
function noSilence(fresh: BackendFacts["fresh"]): BackendFacts["fresh"] {
  return fresh === "silence" ? "none" : fresh;
}

function asked(facts: BackendFacts, readiness: ReadyAnswer, at: number): BackendFacts {
  if (readiness === "unknown" || readiness === "hanging") return { ...facts, readiness };
  if (readiness !== "forbidden") return { ...facts, readiness, readinessAt: at, forbiddenSince: -1 };
  const since = facts.forbiddenSince < 0 ? at : facts.forbiddenSince;
  // While an apiserver is starting, it answers 403 to all clients until it has loaded its RBAC rules, so it is not
  // ready.
  const mayBoot = facts.readinessAt >= 0 && (facts.state !== "ready" || facts.doubtedAt > facts.readinessAt);
  if (mayBoot && at - since < healthLimits.forbiddenMs)
    return { ...facts, readiness: "failing", forbiddenSince: since };
  // A 403 that the start of the apiserver does not explain means that the probe has lost its permission. Whether the
  // backend is ready is then unknown.
  return { ...facts, readiness: "unknown", readinessAt: -1, forbiddenSince: -1 };
}

/**
 * Ends the fact that reads hang, at the earliest `hungReadsMs` after it was found, if /readyz is good. Otherwise the
 * fact would never end: a suspect backend gets no reads, so no read can show its recovery.
 */
function read(facts: BackendFacts, at: number): BackendFacts {
  const isGood = facts.readiness === "ready" || facts.readiness === "unknown";
  return isGood && at - facts.hungAt >= healthLimits.hungReadsMs ? { ...facts, reads: "answering" } : facts;
}

/**
 * Records that the connections are silent or lost. Silent connections also explain hanging reads, so `reads` no longer
 * counts against the backend. Results of new sockets are forgotten, unless the connections were silent or closed
 * already.
 */
function doubted(facts: BackendFacts, connections: "silent" | "lost", at: number): BackendFacts {
  const isLeaving = facts.connections === "going" || facts.connections === "left";
  const now = connections === "lost" && isLeaving ? "left" : connections;
  const doubt = { ...facts, connections: now, reads: "answering" } as const;
  return isSilent(facts) ? doubt : { ...doubt, fresh: "none", doubtedAt: at };
}

/**
 * True if the failure of a new socket proves nothing, because a socket that was opened later has been answered. A
 * socket's silence also proves nothing in two other cases: any answer has arrived since the socket was opened, so the
 * outage in which its SYN was lost is over; or only large packets are lost.
 */
export function isOvertaken(
  { answeredAt, arrivedAt, packetsLostAt }: BackendFacts,
  { met: what, begunAt }: Pick<Fresh, "met" | "begunAt">,
): boolean {
  if (what === "answer" || what === "untrusted") return false;
  return begunAt <= (what === "silence" ? Math.max(arrivedAt, packetsLostAt) : answeredAt);
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
  // One lost SYN proves nothing. After two unanswered sockets in a row, the backend counts as accepting no connections.
  return {
    ...facts,
    fresh: what,
    consecutiveTimeouts,
    readiness: consecutiveTimeouts > 1 ? "hanging" : facts.readiness,
  };
}
