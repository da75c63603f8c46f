/**
 * The facts about one backend, and how evidence changes them. Two pure steps: evidence changes the facts (`learnt`), and
 * the first matching row of `verdicts` gives the verdict. Only recovery is damped: a suspect or dead backend is ready
 * again after several good answers in a row, more of them after each fall, so that a flapping backend stays suspect.
 * If no other backend is ready, an answering one becomes ready at once.
 *
 *              upstream connections answer                 a row of `verdicts` says so
 *     unknown ──────────────▶ ready ─────────────▶ suspect · draining · dead
 *                               ▲                     │          │       │
 *                               └── good answers ─────┴──────────┘       │ a socket answers
 *                                                     ▲                  │
 *                                                  suspect ◀─────────────┘
 */
import type { Evidence, Fresh, Readiness, ReadyAnswer } from "./evidence.ts";
import { healthLimits } from "./limits.ts";

export const backendStates = ["unknown", "ready", "suspect", "dead", "draining"] as const;
export type BackendState = (typeof backendStates)[number];

/** What the data path sees of a backend. */
export type BackendView = {
  readonly name: string;
  readonly state: BackendState;
  readonly since: number;
  /** True while it answers neither on its upstream connections nor on fresh sockets. */
  readonly isMute?: boolean;
};
export const connectionStates = ["none", "answering", "silent", "going", "left", "lost"] as const;
export type ConnectionState = (typeof connectionStates)[number];
/** Everything known about one backend. Times are clock readings. */
export type BackendFacts = {
  readonly state: BackendState;
  /**
   * Its upstream connections as a whole: none yet, at least one answers, none answers, all got GOAWAY, all ended after
   * GOAWAY, all are lost.
   */
  readonly connections: ConnectionState;
  /** The result of the latest fresh socket begun since the upstream connections fell silent or were lost. */
  readonly fresh: "none" | "answer" | "refusal" | "silence";
  /** Its certificate has the wrong name or no trusted issuer. */
  readonly isUntrusted: boolean;
  /** An operator drains it, whatever it reports itself. */
  readonly isDrained: boolean;
  /** Its etcd has a different history from the one that clients have seen, so nothing it answers is true for them. */
  readonly isForked: boolean;
  readonly readiness: Readiness;
  /**
   * When /readyz last reported readiness (200 or 5xx), -1: never; and since when it has answered 403 instead, -1: it
   * does not.
   */
  readonly toldAt: number;
  readonly forbiddenSince: number;
  /** Whether reads that need etcd are answered, and when a backend was last found to hang on them. */
  readonly reads: "answering" | "hanging";
  readonly hungAt: number;
  /** When the upstream connections fell silent or were lost. */
  readonly doubtedAt: number;
  /** When the last answered fresh socket began, and when the last such answer arrived; -1: never. */
  readonly answeredAt: number;
  readonly arrivedAt: number;
  /** When it last began to answer after it had been mute, or for the first time; -1: never. */
  readonly answersAgainAt: number;
  /** Fresh sockets in a row without an answer; good answers in a row since it was last ready. */
  readonly consecutiveTimeouts: number;
  readonly consecutiveSuccesses: number;
  /** When the first of those good answers came. */
  readonly risingSince: number;
  /** Falls from ready, each within `strikeMs` of the previous one, and the time of the last. */
  readonly ejections: number;
  readonly ejectedAt: number;
};

/** What depends on whether backends are probed. */
export type Rules = {
  /** Good answers in a row before a backend that fell once is ready again; 0: at once. Doubles with each fall. */
  readonly rise: number;
  /** Dead requires an unanswered fresh socket. False where no probes run. */
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
  toldAt: -1,
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

/** The facts that decide the verdict. */
export type Facts = Pick<
  BackendFacts,
  "connections" | "fresh" | "isUntrusted" | "isDrained" | "isForked" | "readiness" | "reads"
>;

type Row = {
  readonly connections?: readonly ConnectionState[];
  readonly fresh?: readonly BackendFacts["fresh"][];
  readonly isUntrusted?: boolean;
  readonly isDrained?: boolean;
  readonly isForked?: boolean;
  readonly readiness?: readonly Readiness[];
  readonly reads?: BackendFacts["reads"];
  readonly verdict: BackendState;
};

/** The verdict table. The first matching row decides; a fact that a row does not name may have any value. */
export const verdicts: readonly Row[] = [
  // Reads would show clients a different past, and writes would be lost: no answer is better (D13).
  { isForked: true, verdict: "dead" },
  // No upstream connection, and a new socket is refused or unanswered: certain.
  { connections: ["left", "lost"], fresh: ["refusal", "silence"], verdict: "dead" },
  // It announced its shutdown, on /readyz or on every upstream connection, so it may finish its work (D6).
  { connections: ["left", "lost"], readiness: ["shutdown"], verdict: "draining" },
  { connections: ["left"], fresh: ["none"], verdict: "draining" },
  { connections: ["left", "lost"], isDrained: true, verdict: "draining" },
  // No upstream connection answers. An answered new socket makes it worth a try, but not ready.
  { connections: ["silent", "left", "lost"], verdict: "suspect" },
  // Its certificate does not prove its identity: it gets nothing new, and existing work continues.
  { isUntrusted: true, verdict: "suspect" },
  { readiness: ["shutdown"], verdict: "draining" },
  // It answers PING and serves stale caches, but reads hang (its path to etcd is broken, for example).
  { readiness: ["failing", "hanging"], verdict: "suspect" },
  { reads: "hanging", verdict: "suspect" },
  { isDrained: true, verdict: "draining" },
  { connections: ["going"], verdict: "draining" },
  { connections: ["answering"], verdict: "ready" },
  { verdict: "unknown" },
];

/** Pure: returns the verdict on these facts, before damping. */
export function verdictOf(facts: Facts, needsProof = true): BackendState {
  // A backend that left in good order may be back at the next dial, so only a dial can prove it dead.
  if (facts.connections === "lost" && facts.fresh === "none" && !needsProof) return "dead";
  return verdicts.find((row) => fits(row, facts))?.verdict ?? "unknown";
}

/** Facts of which a row names at most one value. */
const single = ["isUntrusted", "isDrained", "isForked", "reads"] as const;

function fits(row: Row, facts: Facts): boolean {
  const { connections, fresh, readiness } = row;
  if (connections !== undefined && !connections.includes(facts.connections)) return false;
  if (fresh !== undefined && !fresh.includes(facts.fresh)) return false;
  for (const name of single) if (row[name] !== undefined && row[name] !== facts[name]) return false;
  return readiness === undefined || readiness.includes(facts.readiness);
}

/** Pure: returns what is known after one more piece of evidence, at the clock reading `at`. */
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

/** Applies the damping to facts that mean ready. */
function risen(facts: BackendFacts, evidence: Evidence, at: number, rules: Rules): BackendFacts {
  if (facts.state !== "suspect" && facts.state !== "dead")
    return { ...facts, state: "ready", consecutiveSuccesses: 0 };
  // If the facts mean ready, every answer of /readyz is a good one.
  const consecutiveSuccesses = facts.consecutiveSuccesses + (evidence.kind === "readyz" ? 1 : 0);
  const risingSince = facts.consecutiveSuccesses === 0 ? at : facts.risingSince;
  const isLong = consecutiveSuccesses > 0 && at - risingSince >= healthLimits.riseMs;
  if (consecutiveSuccesses >= neededSuccesses(facts, rules) || isLong || evidence.kind === "alone")
    return { ...facts, state: "ready", consecutiveSuccesses: 0 };
  return { ...facts, state: "suspect", consecutiveSuccesses, risingSince };
}

/** 4, 8, 16, 32, 64: at four probes a second the last takes 16 s. */
export function neededSuccesses({ ejections }: BackendFacts, { rise }: Rules): number {
  return rise * 2 ** Math.min(4, Math.max(0, ejections - 1));
}

/**
 * True if it must be probed several times a second: its upstream connections are silent, no socket reaches it, or it is
 * recovering.
 */
export function isUrgent(facts: BackendFacts): boolean {
  return isSilent(facts) || isUnreached(facts) || (facts.state === "suspect" && !needsAnother(facts));
}

/** True if it has no upstream connection and fresh sockets fail: only the next probe can find it again. */
function isUnreached({ connections, fresh }: BackendFacts): boolean {
  return connections === "none" && (fresh === "silence" || fresh === "refusal");
}

/** True if an upstream connection or a fresh socket is answered. */
function isAnswering(facts: BackendFacts): boolean {
  return facts.fresh === "answer" || (facts.connections !== "none" && !isSilent(facts));
}

/** True if none of its upstream connections answers. */
export function isSilent({ connections }: BackendFacts): boolean {
  return connections === "silent" || connections === "left" || connections === "lost";
}

/** True if none of its upstream connections answers and no fresh socket has been answered since. */
export function isMute(facts: BackendFacts): boolean {
  return isSilent(facts) && facts.fresh !== "answer";
}

/**
 * True if no backend answers and at least one is silent instead of refusing: our own network is then the most likely
 * cause (D14). A backend that was never reached neither answers nor counts as silent, because nothing runs on it. A
 * backend without connections is judged by its probes: existing work may run on one that was removed, or removed and
 * added again.
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

/**
 * True if it is suspect for a present reason, so that waiting requests should go elsewhere. False for a recovering one.
 */
export function needsAnother(facts: BackendFacts): boolean {
  return facts.state === "suspect" && verdictOf(facts) !== "ready";
}

/**
 * True if it is dead and fresh sockets get no answer at all: work on sockets without PINGs is lost. If it refuses, its
 * kernel is alive and reports dead processes itself; in a graceful stop an exec may outlive every upstream connection.
 */
export function isSilentlyDead(facts: BackendFacts): boolean {
  return facts.state === "dead" && facts.fresh === "silence";
}

/** Returns the facts after the evidence, except the verdict. */
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

/** New sockets are answered again. This does not change what /readyz itself reports. */
function opened(facts: BackendFacts): BackendFacts {
  const readiness =
    facts.consecutiveTimeouts > 1 && facts.readiness === "hanging" ? "unknown" : facts.readiness;
  return { ...facts, readiness, consecutiveTimeouts: 0 };
}

/** Evidence from probes and requests. */
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
      // The next answered probe refutes it, because each takes a large packet.
      return { ...facts, readiness: "hanging" };
    case "reads-hanging":
      // Without /readyz probes nothing would ever clear hanging reads.
      return rules.needsProof ? { ...facts, reads: "hanging", hungAt: at } : facts;
    case "reads-answer":
      return { ...facts, reads: "answering" };
    case "told":
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

/** A result of /readyz. */
function asked(facts: BackendFacts, readiness: ReadyAnswer, at: number): BackendFacts {
  if (readiness === "unknown" || readiness === "hanging") return { ...facts, readiness };
  if (readiness !== "forbidden") return { ...facts, readiness, toldAt: at, forbiddenSince: -1 };
  const since = facts.forbiddenSince < 0 ? at : facts.forbiddenSince;
  // A starting apiserver serves before it has loaded its RBAC and then answers 403 to all clients: that is not
  // readiness.
  const mayBoot = facts.toldAt >= 0 && (facts.state !== "ready" || facts.doubtedAt > facts.toldAt);
  if (mayBoot && at - since < healthLimits.forbiddenMs)
    return { ...facts, readiness: "failing", forbiddenSince: since };
  // The probe has lost its permission: from now on the backend counts as one that never reported readiness.
  return { ...facts, readiness: "unknown", toldAt: -1, forbiddenSince: -1 };
}

/**
 * No reads go to a backend with hanging reads, so only a new try can clear that state. By then /readyz may report etcd.
 */
function read(facts: BackendFacts, at: number): BackendFacts {
  const isGood = facts.readiness === "ready" || facts.readiness === "unknown";
  return isGood && at - facts.hungAt >= healthLimits.hungReadsMs ? { ...facts, reads: "answering" } : facts;
}

/**
 * That silence also explains hanging reads. A doubt begins once: results of fresh sockets since then are kept when
 * silent upstream connections are lost.
 */
function doubted(facts: BackendFacts, connections: "silent" | "lost", at: number): BackendFacts {
  const isLeaving = facts.connections === "going" || facts.connections === "left";
  const now = connections === "lost" && isLeaving ? "left" : connections;
  const doubt = { ...facts, connections: now, reads: "answering" } as const;
  return isSilent(facts) ? doubt : { ...doubt, fresh: "none", doubtedAt: at };
}

/**
 * True if an unanswered fresh socket proves nothing because another one was answered. Waiting sockets overlap: if one
 * begun before an answer arrived gets no answer, its SYN was lost in an outage that is over. A refusal counts as new
 * unless a socket begun later was answered.
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
  // One lost SYN proves nothing; two unanswered sockets in a row mean that the server accepts no new ones.
  return {
    ...facts,
    fresh: what,
    consecutiveTimeouts,
    readiness: consecutiveTimeouts > 1 ? "hanging" : facts.readiness,
  };
}
