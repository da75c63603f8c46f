/**
 * Follows one backend through the journal until its trouble is an incident or has passed. A short doubt is no incident;
 * an announced restart is one only if it lasts. Pure: entries and clock readings in.
 */

import { limits } from "../base/limits.ts";
import type { EntryOf } from "../events/journal.ts";
import { addImpact, type EvidenceRow, type Impact, noImpact } from "./incident.ts";
import type { IncidentKind } from "./kinds.ts";
import { incidentLimits } from "./limits.ts";

type Changed = EntryOf<"backend.changed">;
type MetEntry = EntryOf<"backend.probed">;

/** The result of the latest fresh socket since the doubt began. */
type Meeting = Pick<MetEntry, "met" | "reached">;

export class BackendCourse {
  readonly name: string;
  /** "" if there is only one cluster. */
  readonly cluster: string;
  state = "unknown";
  /** When the present doubt began, by its first measurement; -1 if there is none. */
  doubtAt = -1;
  /** When the doubt becomes an incident; Infinity if there is none, or if it already is one. */
  dueAt = Number.POSITIVE_INFINITY;
  /** It announced its shutdown: presumably a restart. */
  #isPlanned = false;
  #detector = "";
  #meeting: Meeting | undefined;
  /** The times of its recent falls. */
  #falls: number[] = [];
  /** Evidence since the doubt began, until an incident takes it. */
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

  /** True if it is neither down nor still unknown. */
  get mayBeAsked(): boolean {
    return this.state !== "unknown" && !this.isDown;
  }

  /** True if it has fallen often enough recently to count as flapping. */
  get isFlapping(): boolean {
    return this.#falls.length >= incidentLimits.flaps;
  }

  get falls(): number {
    return this.#falls.length;
  }

  /** The time of its latest fall; undefined without one. */
  get fellAt(): number | undefined {
    return this.#falls.at(-1);
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

  /** A backend kept suspect because it fell often shows further falls on fresh sockets only. */
  met(entry: MetEntry, at: number): void {
    const { met, reached, ms } = entry;
    const isIll = this.state === "suspect" || this.state === "dead";
    if (isIll && met !== "answer" && this.#meeting?.met === "answer") this.#fall(at);
    this.#meeting = { met, reached };
    if (this.dueAt !== Number.POSITIVE_INFINITY && !this.#isPlanned) this.dueAt = this.#due(at);
    const row = { at, detector: "dial", value: Math.round(ms), threshold: 0, unit: "ms" as const };
    this.#row({ ...row, text: meetingOf(entry) });
  }

  /** Adds the cost of a doubt. */
  charge(impact: Partial<Impact>, client: string): void {
    if (this.doubtAt < 0) return;
    addImpact(this.impact, impact);
    if (client !== "" && this.clients.length < limits.incidentClients) this.clients.push(client);
  }

  /** The doubt has become an incident, which has taken the rows. */
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
    // New sockets are answered, or none was tried: an outage of the existing sessions.
    return this.state === "dead" ? "backend-dead" : "backend-blackholed";
  }

  #patience(detector: string): number {
    if (this.#isPlanned) return incidentLimits.restartMs;
    if (detector === "readyz") return incidentLimits.unreadyMs;
    return this.#isProven ? incidentLimits.doubtMs : incidentLimits.unprovenMs;
  }

  /** True if a new socket had a bad result. */
  get #isProven(): boolean {
    return (
      this.#detector === "certificate" || (this.#meeting !== undefined && this.#meeting.met !== "answer")
    );
  }

  /** Returns when the doubt is due after a new socket's result; never before the present reading. */
  #due(at: number): number {
    return Math.max(at, this.doubtAt + this.#patience(this.#detector));
  }

  #fall(at: number): void {
    // A restart in good order is no fall.
    if (this.#isPlanned) return;
    this.#falls = [...this.#falls.filter((fell) => at - fell < incidentLimits.flappingMs), at].slice(
      -incidentLimits.flaps,
    );
  }

  #row(row: EvidenceRow): void {
    if (this.doubtAt >= 0) this.rows = [...this.rows, row].slice(-incidentLimits.incidentEvidence);
  }

  #recover(): void {
    this.#isPlanned = false;
    this.#meeting = undefined;
    this.doubtAt = -1;
    this.told();
  }
}

/** An answer has no reason to report. */
function meetingOf({ met, reached, reason }: MetEntry): string {
  if (met === "answer") return "A new connection was answered";
  return `A new connection met ${met}${met === "silence" && reached !== "" ? " after TCP connected" : ""}: ${reason}`;
}
