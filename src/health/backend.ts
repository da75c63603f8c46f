/**
 * What we hold of one backend, and how evidence changes it. Two pure steps: evidence changes what is held (`learnt`),
 * and the first row of `verdicts` that fits gives the verdict. Only the way back up is damped: a backend that was
 * suspect or dead is ready again after several good answers in a row, more of them each time that it fell, so that
 * one which comes and goes each second stays suspect. Nobody waits for that when no other backend is ready.
 *
 *              upstream connections answer                 a row of `verdicts` says so
 *     unknown ──────────────▶ ready ─────────────▶ suspect · draining · dead
 *                               ▲                     │          │       │
 *                               └── good answers ─────┴──────────┘       │ a socket answers
 *                                                     ▲                  │
 *                                                  suspect ◀─────────────┘
 */
import type { Met } from "../base/failure.ts";
import type { Evidence, Readiness, ReadyAnswer } from "./evidence.ts";

export const backendStates = ["unknown", "ready", "suspect", "dead", "draining"] as const;
export type BackendState = (typeof backendStates)[number];

/** What the data path may know of a backend. */
export type BackendView = { readonly name: string; readonly state: BackendState; readonly since: number };

export const connectionStates = ["none", "answering", "silent", "going", "left", "lost"] as const;
export type ConnectionState = (typeof connectionStates)[number];

/** The whole of what is known of one backend. Times are clock readings. */
export type BackendFacts = {
  readonly state: BackendState;
  /** All together: none yet, at least one answers, none does, all were sent away, and ended after that, all are lost. */
  readonly connections: ConnectionState;
  /** What the latest fresh socket met that was begun since the upstream connections fell silent or were lost. */
  readonly fresh: "none" | "answer" | "refusal" | "silence";
  /** Its certificate is for another name, or not one that we trust. */
  readonly isUntrusted: boolean;
  /** An operator wants it let go, whatever it says of itself. */
  readonly isDrained: boolean;
  /** Its etcd has another history than clients have seen: nothing that it says is true for them. */
  readonly isForked: boolean;
  readonly readiness: Readiness;
  /** When /readyz last told its readiness (200 or 5xx), -1: never; and since when it answers 403 instead, -1: it does not. */
  readonly toldAt: number;
  readonly forbiddenSince: number;
  /** Do reads that need etcd come back? And when it was last learnt that they do not. */
  readonly reads: "answering" | "hanging";
  readonly hungAt: number;
  /** When the upstream connections fell silent or were lost. */
  readonly doubtedAt: number;
  /** When the last fresh socket that was answered began, and when the last such answer arrived; -1: never. */
  readonly answeredAt: number;
  readonly arrivedAt: number;
  /** When it last began to answer after it had been mute, or for the first time; -1: never. */
  readonly answersAgainAt: number;
  /** Fresh sockets in a row that met silence; good answers in a row since it was ready last. */
  readonly consecutiveTimeouts: number;
  readonly consecutiveSuccesses: number;
  /** When the first of those came. */
  readonly risingSince: number;
  /** How often it fell from ready, each time within `strikeMs` of the time before, and when last. */
  readonly ejections: number;
  readonly ejectedAt: number;
};

/** How a verdict is come to. */
export type Rules = {
  /** Good answers in a row before a backend that fell once is ready again; 0: at once. It doubles with each fall. */
  readonly rise: number;
  /** Good answers for so long are enough, however few they are: a far backend gives one a second. */
  readonly riseMs: number;
  /** Falls further apart than this are not the same trouble. */
  readonly strikeMs: number;
  /** Reads that hung once are tried again when /readyz has nothing against it so long after. */
  readonly hungMs: number;
  /** So long a 403 of a backend that has told its readiness before means that it boots; then, that we may not ask. */
  readonly forbiddenMs: number;
  /** Dead needs a fresh socket that was not answered. False where nobody probes. */
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

/** What matters for the verdict. */
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

/** The table. The first row that fits decides; what a row does not name may be anything. */
export const verdicts: readonly Row[] = [
  // Whoever reads there is led into another past, and a write is lost: better no answer (D13).
  { isForked: true, verdict: "dead" },
  // Without an upstream connection, and a new socket is refused or meets nothing: certain.
  { connections: ["left", "lost"], fresh: ["refusal", "silence"], verdict: "dead" },
  // It has said that it goes, on /readyz or on every upstream connection: it is let go in peace (D6).
  { connections: ["left", "lost"], readiness: ["shutdown"], verdict: "draining" },
  { connections: ["left"], fresh: ["none"], verdict: "draining" },
  { connections: ["left", "lost"], isDrained: true, verdict: "draining" },
  // No upstream connection speaks for it. A new socket that is answered makes it worth a try, but not ready.
  { connections: ["silent", "left", "lost"], verdict: "suspect" },
  // Who answers there has not its name: nothing new goes there, what is there goes on.
  { isUntrusted: true, verdict: "suspect" },
  { readiness: ["shutdown"], verdict: "draining" },
  // It answers PING and serves old caches, and its reads hang (its way to etcd is cut, say).
  { readiness: ["failing", "hanging"], verdict: "suspect" },
  { reads: "hanging", verdict: "suspect" },
  { isDrained: true, verdict: "draining" },
  { connections: ["going"], verdict: "draining" },
  { connections: ["answering"], verdict: "ready" },
  { verdict: "unknown" },
];

/** Pure: the verdict on these facts, before damping. */
export function verdictOf(facts: Facts, needsProof = true): BackendState {
  // One that left in good order may be back at the next dial: only that can prove it dead.
  if (facts.connections === "lost" && facts.fresh === "none" && !needsProof) return "dead";
  return verdicts.find((row) => fits(row, facts))?.verdict ?? "unknown";
}

/** Facts of which a row names one value, or none. */
const single = ["isUntrusted", "isDrained", "isForked", "reads"] as const;

function fits(row: Row, facts: Facts): boolean {
  const { connections, fresh, readiness } = row;
  if (connections !== undefined && !connections.includes(facts.connections)) return false;
  if (fresh !== undefined && !fresh.includes(facts.fresh)) return false;
  for (const name of single) if (row[name] !== undefined && row[name] !== facts[name]) return false;
  return readiness === undefined || readiness.includes(facts.readiness);
}

/** Pure: what is held after one more piece of evidence, at the clock reading `at`. */
export function judge(held: BackendFacts, evidence: Evidence, at: number, rules: Rules): BackendFacts {
  const latest = learnt(held, evidence, at, rules);
  const facts = !isAnswering(held) && isAnswering(latest) ? { ...latest, answersAgainAt: at } : latest;
  const verdict = verdictOf(facts, rules.needsProof);
  if (verdict === "ready") return risen(facts, evidence, at, rules);
  const isFall = held.state === "ready" && (verdict === "suspect" || verdict === "dead");
  const fallen = { ...facts, state: verdict, consecutiveSuccesses: 0 };
  if (!isFall) return fallen;
  const isSame = held.ejections > 0 && at - held.ejectedAt <= rules.strikeMs;
  return { ...fallen, ejections: isSame ? held.ejections + 1 : 1, ejectedAt: at };
}

/** The facts call it ready: is it yet? */
function risen(facts: BackendFacts, evidence: Evidence, at: number, rules: Rules): BackendFacts {
  if (facts.state !== "suspect" && facts.state !== "dead")
    return { ...facts, state: "ready", consecutiveSuccesses: 0 };
  // With the facts that call it ready every answer of /readyz is a good one.
  const consecutiveSuccesses = facts.consecutiveSuccesses + (evidence.kind === "readyz" ? 1 : 0);
  const risingSince = facts.consecutiveSuccesses === 0 ? at : facts.risingSince;
  const isLong = consecutiveSuccesses > 0 && at - risingSince >= rules.riseMs;
  if (consecutiveSuccesses >= neededSuccesses(facts, rules) || isLong || evidence.kind === "alone")
    return { ...facts, state: "ready", consecutiveSuccesses: 0 };
  return { ...facts, state: "suspect", consecutiveSuccesses, risingSince };
}

/** 4, 8, 16, 32, 64: at four probes a second the last takes 16 s. */
export function neededSuccesses({ ejections }: BackendFacts, { rise }: Rules): number {
  return rise * 2 ** Math.min(4, Math.max(0, ejections - 1));
}

/** True if it is to be probed several times a second: its upstream connections are silent, no socket reaches it, or it is on its way up. */
export function isUrgent(held: BackendFacts): boolean {
  return isSilent(held) || isUnreached(held) || (held.state === "suspect" && !needsAnother(held));
}

/** True if it has no upstream connection, and fresh sockets are not answered: only the next probe finds it back. */
function isUnreached({ connections, fresh }: BackendFacts): boolean {
  return connections === "none" && (fresh === "silence" || fresh === "refusal");
}

/** True if an upstream connection or a fresh socket is answered. */
function isAnswering(held: BackendFacts): boolean {
  return held.fresh === "answer" || (held.connections !== "none" && !isSilent(held));
}

/** None of its upstream connections says anything. */
export function isSilent({ connections }: BackendFacts): boolean {
  return connections === "silent" || connections === "left" || connections === "lost";
}

/** None of its upstream connections says anything, and no fresh socket has been answered since. */
export function isMute(held: BackendFacts): boolean {
  return isSilent(held) && held.fresh !== "answer";
}

/**
 * Does no backend answer, though at least one does not refuse but says nothing? Then our own network is the most likely
 * cause (D14). One that was never reached neither answers nor counts as silent: nothing lives on it. Of one without
 * connections its probes say it: what lives may stand on one that was removed, or removed and added again.
 */
export function areAllSilent(all: readonly BackendFacts[]): boolean {
  const isUnused = ({ connections, fresh }: BackendFacts): boolean =>
    connections === "none" && fresh !== "answer";
  const isCutOff = (held: BackendFacts): boolean =>
    (isMute(held) || isUnreached(held)) &&
    held.answeredAt >= 0 &&
    held.fresh !== "refusal" &&
    held.connections !== "left";
  return all.every((held) => isMute(held) || isUnused(held)) && all.some(isCutOff);
}

/** Suspect for a reason that holds now: what waits for it had better ask elsewhere. One on its way up is not. */
export function needsAnother(held: BackendFacts): boolean {
  return held.state === "suspect" && verdictOf(held) !== "ready";
}

/**
 * Dead, and fresh sockets meet nothing at all: what is under way on sockets without a PING is over. One that refuses has
 * a living kernel, which tells of a dead process by itself; in a graceful stop an exec may outlive every upstream connection.
 */
export function isSilentlyDead(held: BackendFacts): boolean {
  return held.state === "dead" && held.fresh === "silence";
}

/** What is held after the evidence, but for the verdict. */
function learnt(held: BackendFacts, evidence: Evidence, at: number, rules: Rules): BackendFacts {
  return isOfConnections(evidence) ? ofConnections(held, evidence, at) : ofAnswers(held, evidence, at, rules);
}

type OfConnections = Extract<Evidence, { kind: `connection${string}` }>;

function isOfConnections(evidence: Evidence): evidence is OfConnections {
  return evidence.kind.startsWith("connection");
}

function ofConnections(held: BackendFacts, evidence: OfConnections, at: number): BackendFacts {
  switch (evidence.kind) {
    case "connection-opened":
      return {
        ...opened(held),
        connections: "answering",
        fresh: "answer",
        isUntrusted: false,
        answeredAt: at,
        arrivedAt: at,
      };
    case "connections-answer":
      return { ...held, connections: "answering" };
    case "connections-going":
      return { ...held, connections: "going" };
    case "connections-silent":
      return doubted(held, "silent", at);
    case "connections-lost":
      return doubted(held, "lost", at);
    default:
      evidence satisfies never;
      return held;
  }
}

/** That new sockets met silence is over. What /readyz itself says, or does not, is not. */
function opened(held: BackendFacts): BackendFacts {
  const readiness = held.consecutiveTimeouts > 1 && held.readiness === "hanging" ? "unknown" : held.readiness;
  return { ...held, readiness, consecutiveTimeouts: 0 };
}

/** What it answers to probes and requests, or does not. */
function ofAnswers(
  held: BackendFacts,
  evidence: Exclude<Evidence, OfConnections>,
  at: number,
  rules: Rules,
): BackendFacts {
  switch (evidence.kind) {
    case "fresh":
      return met(held, evidence, at);
    case "readyz":
      return read(asked(held, evidence.readiness, at, rules), at, rules);
    case "packets-lost":
      // The next probe that is answered refutes it: each takes a large packet.
      return { ...held, readiness: "hanging" };
    case "reads-hanging":
      // Where nobody asks /readyz, nobody would ever find out that they do not hang any more.
      return rules.needsProof ? { ...held, reads: "hanging", hungAt: at } : held;
    case "reads-answer":
      return { ...held, reads: "answering" };
    case "told":
      return { ...held, isDrained: evidence.isDrained };
    case "history":
      return { ...held, isForked: evidence.isForked };
    case "alone":
      return held;
    default:
      evidence satisfies never;
      return held;
  }
}

/** /readyz has answered, or has not. */
function asked(held: BackendFacts, readiness: ReadyAnswer, at: number, { forbiddenMs }: Rules): BackendFacts {
  if (readiness === "unknown" || readiness === "hanging") return { ...held, readiness };
  if (readiness !== "forbidden") return { ...held, readiness, toldAt: at, forbiddenSince: -1 };
  const since = held.forbiddenSince < 0 ? at : held.forbiddenSince;
  // An apiserver serves before it has loaded its RBAC, and then refuses everybody: 403 is no readiness of one that restarts.
  const mayBoot = held.toldAt >= 0 && (held.state !== "ready" || held.doubtedAt > held.toldAt);
  if (mayBoot && at - since < forbiddenMs) return { ...held, readiness: "failing", forbiddenSince: since };
  // The right to ask is gone: the next restart is judged as that of a backend which never told.
  return { ...held, readiness: "unknown", toldAt: -1, forbiddenSince: -1 };
}

/** Nothing is read there meanwhile: only another try can tell, and /readyz may know of etcd by then. */
function read(held: BackendFacts, at: number, { hungMs }: Rules): BackendFacts {
  const isGood = held.readiness === "ready" || held.readiness === "unknown";
  return isGood && at - held.hungAt >= hungMs ? { ...held, reads: "answering" } : held;
}

/** What hung is explained by that silence. A doubt begins once: what fresh sockets have met since is kept when silent upstream connections are lost. */
function doubted(held: BackendFacts, connections: "silent" | "lost", at: number): BackendFacts {
  const isLeaving = held.connections === "going" || held.connections === "left";
  const now = connections === "lost" && isLeaving ? "left" : connections;
  const doubt = { ...held, connections: now, reads: "answering" } as const;
  return isSilent(held) ? doubt : { ...doubt, fresh: "none", doubtedAt: at };
}

type Fresh = { readonly met: Met; readonly begunAt: number };

/**
 * True if a fresh socket that was not answered proves nothing, since another was. Sockets that wait overlap: the SYN of one that was begun before
 * an answer arrived, and met silence, was lost in a hole that is over. A refusal is as new as its arrival, unless a socket
 * that began later was answered.
 */
export function isOvertaken({ answeredAt, arrivedAt }: BackendFacts, { met: what, begunAt }: Fresh): boolean {
  if (what === "answer" || what === "untrusted") return false;
  return begunAt <= (what === "silence" ? arrivedAt : answeredAt);
}

function met(held: BackendFacts, evidence: Fresh, at: number): BackendFacts {
  const { met: what, begunAt } = evidence;
  if (what === "answer" || what === "untrusted") {
    const isUntrusted = what === "untrusted";
    const fresh = begunAt >= held.doubtedAt ? "answer" : held.fresh;
    const answeredAt = Math.max(held.answeredAt, begunAt);
    return { ...held, fresh, isUntrusted, answeredAt, arrivedAt: at, consecutiveTimeouts: 0 };
  }
  if (begunAt < held.doubtedAt || isOvertaken(held, evidence)) return held;
  const consecutiveTimeouts = what === "silence" ? held.consecutiveTimeouts + 1 : 0;
  // One lost SYN is nothing; two sockets in a row that got no answer are a server that takes no new ones.
  return {
    ...held,
    fresh: what,
    consecutiveTimeouts,
    readiness: consecutiveTimeouts > 1 ? "hanging" : held.readiness,
  };
}
