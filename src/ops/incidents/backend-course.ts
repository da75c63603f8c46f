/**
 * Reads the journal entries about one backend and decides when its failure becomes an incident. A short suspicion is
 * not an incident. An announced restart becomes an incident only if it takes too long. No I/O.
 */

import { limits } from "../../base/limits.ts";
import type { EntryOf } from "../../events/journal.ts";
import { addImpact, type EvidenceRow, type Impact, noImpact } from "./incident.ts";
import type { IncidentKind } from "./kinds.ts";
import { incidentLimits } from "./limits.ts";

type Changed = EntryOf<"backend.changed">;
type Probed = EntryOf<"backend.probed">;

type ProbeResult = Pick<Probed, "met" | "reached">;

export class BackendCourse {
  readonly name: string;
  /** Name of the backend's cluster; "": there is only one cluster. */
  readonly cluster: string;
  state = "unknown";
  /**
   * Clock reading (ms) at which the backend's present silence or failure began, according to the detector that reported
   * it first; -1: the backend is not suspect.
   */
  doubtAt = -1;
  /** Clock reading (ms) at which the suspicion becomes an incident; Infinity: no suspicion, or already an incident. */
  dueAt = Number.POSITIVE_INFINITY;
  #hasAnnouncedShutdown = false;
  #detector = "";
  #probe: ProbeResult | undefined;
  /** Clock readings (ms) at which the backend recently left the state "ready", or failed again on a new connection. */
  #falls: number[] = [];
  /** Evidence against the backend that belongs to no incident yet. */
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

  get mayBeAsked(): boolean {
    return this.state !== "unknown" && !this.isDown;
  }

  get isFlapping(): boolean {
    return this.#falls.length >= incidentLimits.flaps;
  }

  get falls(): number {
    return this.#falls.length;
  }

  get fellAt(): number | undefined {
    return this.#falls.at(-1);
  }

  changed(entry: Changed, at: number): void {
    const { from, to, detector, valueMs, limitMs, reason } = entry;
    this.state = to;
    if (to === "ready") return this.#recover();
    if (to === "draining") this.#hasAnnouncedShutdown = true;
    if (to !== "suspect" && to !== "dead") return;
    if (from === "ready") this.#fall(at);
    if (this.doubtAt < 0) {
      this.doubtAt = at - valueMs;
      this.#detector = detector;
      this.dueAt = at + this.#patience(detector);
    }
    this.#row({ at, detector, value: valueMs, threshold: limitMs, unit: "ms", text: `${to}: ${reason}` });
    if (to === "dead") this.dueAt = this.#hasAnnouncedShutdown ? this.dueAt : Math.min(this.dueAt, at);
  }

  /**
   * Records the outcome of a new connection to the backend. While the backend is suspect or dead, a failed connection
   * after a successful one counts as a new failure of the backend, although the backend's state does not change.
   */
  met(entry: Probed, at: number): void {
    const { met, reached, ms } = entry;
    const isIll = this.state === "suspect" || this.state === "dead";
    if (isIll && met !== "answer" && this.#probe?.met === "answer") this.#fall(at);
    this.#probe = { met, reached };
    if (this.dueAt !== Number.POSITIVE_INFINITY && !this.#hasAnnouncedShutdown) this.dueAt = this.#due(at);
    const row = { at, detector: "dial", value: Math.round(ms), threshold: 0, unit: "ms" as const };
    this.#row({ ...row, text: textOf(entry) });
  }

  charge(impact: Partial<Impact>, client: string): void {
    if (this.doubtAt < 0) return;
    addImpact(this.impact, impact);
    if (client !== "" && this.clients.length < limits.incidentClients) this.clients.push(client);
  }

  /** Clears the evidence and the effects on clients, because an incident has taken them over. */
  handOver(): void {
    this.dueAt = Number.POSITIVE_INFINITY;
    this.rows = [];
    this.impact = noImpact();
    this.clients = [];
  }

  get kind(): IncidentKind {
    if (this.#detector === "packets") return "backend-packets-lost";
    const { met, reached } = this.#probe ?? { met: "", reached: "" };
    if (met === "untrusted" || this.#detector === "certificate") return "backend-untrusted";
    if (met === "refusal") return "backend-dead";
    if (met === "silence") return reached === "" ? "backend-blackholed" : "backend-frozen";
    if (this.#detector === "readyz") return "backend-unready";
    // No new connection has failed, so only existing connections have a problem.
    return this.state === "dead" ? "backend-dead" : "backend-blackholed";
  }

  #patience(detector: string): number {
    if (this.#hasAnnouncedShutdown) return incidentLimits.restartMs;
    if (detector === "readyz") return incidentLimits.unreadyMs;
    return this.#isProven ? incidentLimits.doubtMs : incidentLimits.unprovenMs;
  }

  get #isProven(): boolean {
    return this.#detector === "certificate" || (this.#probe !== undefined && this.#probe.met !== "answer");
  }

  #due(at: number): number {
    return Math.max(at, this.doubtAt + this.#patience(this.#detector));
  }

  #fall(at: number): void {
    if (this.#hasAnnouncedShutdown) return;
    this.#falls = [...this.#falls.filter((fell) => at - fell < incidentLimits.flappingMs), at].slice(
      -incidentLimits.flaps,
    );
  }

  #row(row: EvidenceRow): void {
    if (this.doubtAt >= 0) this.rows = [...this.rows, row].slice(-incidentLimits.incidentEvidence);
  }

  #recover(): void {
    this.#hasAnnouncedShutdown = false;
    this.#probe = undefined;
    this.doubtAt = -1;
    this.handOver();
  }
}

const endings = {
  refusal: "was refused",
  silence: "got no answer",
  untrusted: "failed TLS verification",
};

function textOf({ met, reached, reason }: Probed): string {
  if (met === "answer") return "A new connection was answered";
  return `A new connection ${endings[met]}${met === "silence" && reached !== "" ? " after TCP connected" : ""}: ${reason}`;
}
