/**
 * What befalls one backend, as the journal tells it, until it is an incident or was nothing: a doubt that passes quickly
 * is none, an announced restart is none unless it lasts. Pure: entries and clock readings in.
 */

import { limits } from "../base/limits.ts";
import type { Entry } from "../events/journal.ts";
import { addImpact, type EvidenceRow, type Impact, noImpact } from "./incident.ts";
import type { IncidentKind } from "./kinds.ts";

type Changed = Extract<Entry, { kind: "backend.changed" }>;
type MetEntry = Extract<Entry, { kind: "backend.probed" }>;

/** What the latest fresh socket met, since the doubt began. */
type Meeting = Pick<MetEntry, "met" | "reached">;

export class BackendCourse {
  readonly name: string;
  /** "" for the only one. */
  readonly cluster: string;
  state = "unknown";
  /** When the present doubt began, by the first thing that was measured; -1 when there is none. */
  doubtAt = -1;
  /** When the doubt becomes an incident; Infinity when there is none, or it is one already. */
  dueAt = Number.POSITIVE_INFINITY;
  /** It has said that it goes: a restart, for all that is known. */
  #isPlanned = false;
  #detector = "";
  #meeting: Meeting | undefined;
  /** When it fell, of late. */
  #falls: number[] = [];
  /** Told since the doubt began, before there is an incident to take it. */
  rows: EvidenceRow[] = [];
  impact: Impact = noImpact();
  clients: string[] = [];

  constructor(name: string, cluster = "") {
    this.cluster = cluster;
    this.name = name;
  }

  get isDown(): boolean {
    return this.state === "dead" || (this.state === "suspect" && this.dueAt === Number.POSITIVE_INFINITY);
  }

  /** Neither down nor still unknown. */
  get mayBeAsked(): boolean {
    return this.state !== "unknown" && !this.isDown;
  }

  /** So many falls lately that it comes and goes? */
  get isFlapping(): boolean {
    return this.#falls.length >= limits.flaps;
  }

  get falls(): number {
    return this.#falls.length;
  }

  changed(entry: Changed, at: number): void {
    const { from, to, detector, valueMs, limitMs, reason } = entry;
    this.state = to;
    if (to === "ready") return this.#recover();
    if (to === "draining") this.#isPlanned = true;
    if (to !== "suspect" && to !== "dead") return;
    if (from === "ready") this.#fall(at);
    if (this.doubtAt < 0) {
      this.doubtAt = at - valueMs;
      this.#detector = detector;
      this.dueAt = at + this.#patience(detector);
    }
    this.#row({ at, detector, value: valueMs, threshold: limitMs, unit: "ms", text: `${to}: ${reason}` });
    if (to === "dead") this.dueAt = this.#isPlanned ? this.dueAt : Math.min(this.dueAt, at);
  }

  /** A backend that is kept suspect because it fell often shows its falls on fresh sockets only. */
  met(entry: MetEntry, at: number): void {
    const { met, reached, ms } = entry;
    const isIll = this.state === "suspect" || this.state === "dead";
    if (isIll && met !== "answer" && this.#meeting?.met === "answer") this.#fall(at);
    this.#meeting = { met, reached };
    if (this.dueAt !== Number.POSITIVE_INFINITY && !this.#isPlanned) this.dueAt = this.#due(at);
    const row = { at, detector: "dial", value: Math.round(ms), threshold: 0, unit: "ms" as const };
    this.#row({ ...row, text: meetingOf(entry) });
  }

  /** What it costs while it is in doubt. */
  charge(impact: Partial<Impact>, client: string): void {
    if (this.doubtAt < 0) return;
    addImpact(this.impact, impact);
    if (client !== "" && this.clients.length < limits.incidentClients) this.clients.push(client);
  }

  /** It is an incident now, and tells its rows there. */
  told(): void {
    this.dueAt = Number.POSITIVE_INFINITY;
    this.rows = [];
    this.impact = noImpact();
    this.clients = [];
  }

  get kind(): IncidentKind {
    if (this.#detector === "packets") return "backend-packets-lost";
    const { met, reached } = this.#meeting ?? { met: "", reached: "" };
    if (met === "untrusted" || this.#detector === "certificate") return "backend-untrusted";
    if (met === "refusal") return "backend-dead";
    if (met === "silence") return reached === "" ? "backend-blackholed" : "backend-frozen";
    if (this.#detector === "readyz") return "backend-unready";
    // New sockets are answered, or none was tried: a hole under the sessions that there were.
    return this.state === "dead" ? "backend-dead" : "backend-blackholed";
  }

  #patience(detector: string): number {
    if (this.#isPlanned) return limits.restartMs;
    if (detector === "readyz") return limits.unreadyMs;
    return this.#isProven ? limits.doubtMs : limits.unprovenMs;
  }

  /** Did a new socket meet something bad? */
  get #isProven(): boolean {
    return (
      this.#detector === "certificate" || (this.#meeting !== undefined && this.#meeting.met !== "answer")
    );
  }

  /** Now that a new socket has met something; never before the present reading. */
  #due(at: number): number {
    return Math.max(at, this.doubtAt + this.#patience(this.#detector));
  }

  #fall(at: number): void {
    // One that restarts in good order does not fall.
    if (this.#isPlanned) return;
    this.#falls = [...this.#falls.filter((fell) => at - fell < limits.flappingMs), at].slice(-limits.flaps);
  }

  #row(row: EvidenceRow): void {
    if (this.doubtAt >= 0) this.rows = [...this.rows, row].slice(-limits.incidentEvidence);
  }

  #recover(): void {
    this.#isPlanned = false;
    this.#meeting = undefined;
    this.doubtAt = -1;
    this.told();
  }
}

/** Of an answer there is no reason to tell. */
function meetingOf({ met, reached, reason }: MetEntry): string {
  if (met === "answer") return "A new connection was answered";
  return `A new connection met ${met}${met === "silence" && reached !== "" ? " after TCP connected" : ""}: ${reason}`;
}
