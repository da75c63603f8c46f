/** Turns journal entries about backends into incidents: which backends are down, how, and which clients are affected. */

import { limits } from "../../base/limits.ts";
import type { Entry, EntryOf } from "../../events/journal.ts";
import { BackendCourse } from "./backend-course.ts";
import { addClient, addImpact, type EvidenceRow, type Impact, type Incident } from "./incident.ts";
import type { IncidentKind } from "./kinds.ts";
import { incidentLimits } from "./limits.ts";
import { findingOf, type IncidentStore } from "./store.ts";

/** The incident kinds for a backend that is down. A backend has at most one of these incidents at a time. */
const downKinds: readonly IncidentKind[] = [
  "backend-blackholed",
  "backend-frozen",
  "backend-packets-lost",
  "backend-dead",
  "backend-unready",
  "backend-untrusted",
];

type CacheKind = "backend-stale" | "cache-progress-delayed";

type Named = { readonly backend: string; readonly cluster?: string };

export class BackendFold {
  readonly #store: IncidentStore;
  readonly #courses = new Map<string, BackendCourse>();
  /**
   * The resources whose watch cache at a backend has a problem. The first key is the kind of incident, and the second
   * is the backend.
   */
  readonly #caches = {
    "backend-stale": new Map<string, Set<string>>(),
    "cache-progress-delayed": new Map<string, Set<string>>(),
  };

  constructor(store: IncidentStore) {
    this.#store = store;
  }

  /** Clock reading (ms) at which the owner must call `tick`; Infinity: never. */
  get dueAt(): number {
    let dueAt = Number.POSITIVE_INFINITY;
    for (const course of this.#courses.values()) dueAt = Math.min(dueAt, course.dueAt);
    return dueAt;
  }

  take(entry: Entry, at: number): void {
    // A backend is recorded even before its state is known. Otherwise the known backends could count as all backends,
    // and "all-backends-down" would be opened too early.
    if (entry.kind === "backend.added") this.#courseOf(entry);
    else if (entry.kind === "backend.changed") this.#changed(entry, at);
    else if (entry.kind === "backend.probed") this.#met(entry, at);
    else if (entry.kind === "backend.removed") this.#removed(entry.backend, at);
    else if (entry.kind === "cache.stalled") this.#stalled(entry, at);
    else if (entry.kind === "cache.recovered") this.#recovered("backend-stale", entry, at);
    else if (entry.kind === "cache.progress_delayed") this.#unnotified(entry, at);
    else if (entry.kind === "cache.progress_restored") this.#recovered("cache-progress-delayed", entry, at);
    else this.#cost(entry);
  }

  tick(at: number): void {
    for (const course of this.#courses.values()) if (course.dueAt <= at) this.#open(course, at);
    const clusters = new Set(Array.from(this.#courses.values(), ({ cluster }) => cluster));
    for (const cluster of clusters) this.#judgeAll(cluster, at);
  }

  #courseOf({ backend: name, cluster }: Named): BackendCourse | undefined {
    const known = this.#courses.get(name);
    if (known !== undefined || this.#courses.size >= incidentLimits.incidentBackends) return known;
    const course = new BackendCourse(name, cluster);
    this.#courses.set(name, course);
    return course;
  }

  #changed(entry: EntryOf<"backend.changed">, at: number): void {
    const course = this.#courseOf(entry);
    if (course === undefined) return;
    course.changed(entry, at);
    if (entry.to === "ready") this.#endDown(course.name, `Ready again: ${entry.reason}`, at);
    if (entry.to === "dead") this.#endCaches(course.name, "The backend is dead", at);
    this.#follow(course, at);
  }

  #met(entry: EntryOf<"backend.probed">, at: number): void {
    const course = this.#courseOf(entry);
    if (course === undefined) return;
    course.met(entry, at);
    this.#follow(course, at);
  }

  #follow(course: BackendCourse, at: number): void {
    const open = this.#downOf(course.name);
    if (open !== undefined) this.#join(open, course, at);
    else if (course.dueAt <= at) this.#open(course, at);
    // Only a new failure is evidence of flapping, not a failed probe of a backend that stays dead.
    if (course.isFlapping && course.fellAt === at) this.#flapping(course, at);
    this.#judgeAll(course.cluster, at);
  }

  #join(open: Incident, course: BackendCourse, at: number): void {
    this.#store.found({ ...open, evidence: course.rows }, at);
    course.handOver();
  }

  #open(course: BackendCourse, at: number): void {
    const { name, cluster, kind, rows, doubtAt: startedAt } = course;
    const summary = `${name}: ${rows.at(-1)?.text ?? course.state}`;
    const opened = this.#store.found(
      { kind, subject: name, backend: name, cluster, summary, startedAt, evidence: rows },
      at,
    );
    if (opened !== undefined) {
      addImpact(opened.impact, course.impact);
      for (const client of course.clients) addClient(opened.affected, client);
    }
    course.handOver();
  }

  #flapping({ name, cluster, falls }: BackendCourse, at: number): void {
    const text = `${falls} failures within ${incidentLimits.flappingMs / 1000} s`;
    const [value, threshold] = [falls, incidentLimits.flaps];
    const row: EvidenceRow = { at, detector: "falls", value, threshold, unit: "times", text };
    const more = { backend: name, cluster, summary: `${name} is flapping: ${text}` };
    this.#store.found(findingOf("backend-flapping", name, row, more), at);
  }

  /**
   * Opens or ends the incident "all-backends-down" of one cluster. Only the cluster's own backends count, because those
   * of other clusters cannot serve its clients.
   */
  #judgeAll(cluster: string, at: number): void {
    const courses = [...this.#courses.values()].filter((course) => course.cluster === cluster);
    const kind = "all-backends-down";
    const isAsked = courses.length === 0 || courses.some((course) => course.mayBeAsked);
    if (isAsked) return this.#store.end(kind, cluster, "A backend is available again", at);
    const isDown = courses.every((course) => course.isDown);
    if (!isDown || this.#store.find(kind, cluster) !== undefined) return;
    const which = cluster === "" ? "" : `${cluster}: `;
    const text = `${which}0 of ${courses.length} backends are available`;
    const row: EvidenceRow = { at, detector: "backends", value: 0, threshold: 1, unit: "backends", text };
    const startedAt = Math.max(...courses.map((course) => course.doubtAt));
    this.#store.found(findingOf(kind, cluster, row, { cluster, startedAt }), at);
  }

  #downOf(name: string): Incident | undefined {
    return downKinds.map((kind) => this.#store.find(kind, name)).find((one) => one !== undefined);
  }

  #endDown(name: string, ending: string, at: number): void {
    for (const kind of downKinds) this.#store.end(kind, name, ending, at);
  }

  #removed(name: string, at: number): void {
    const cluster = this.#courses.get(name)?.cluster ?? "";
    this.#courses.delete(name);
    const ending = "The backend was removed";
    this.#endDown(name, ending, at);
    this.#store.end("backend-flapping", name, ending, at);
    this.#endCaches(name, ending, at);
    this.#judgeAll(cluster, at);
  }

  #stalled(entry: EntryOf<"cache.stalled">, at: number): void {
    const { resource, version, peersVersion, behindMs, detector, watches } = entry;
    const text = `The cache of ${resource} is stalled at ${version}, others have reached ${peersVersion}; ${watches} watches are moved`;
    const row = { at, detector, value: behindMs, threshold: limits.behindMs, text };
    this.#foundCache("backend-stale", entry, row);
  }

  #unnotified(entry: EntryOf<"cache.progress_delayed">, at: number): void {
    const { resource, version, etcdVersion, lateMs } = entry;
    const text = `etcd sends progress notifications rarely (default: every 10 min): ${Math.round(lateMs / 1000)} s after etcd was at ${etcdVersion} the cache of ${resource} was at ${version}. Quiet watches do not survive two restarts of apiservers within that time`;
    const row = { at, detector: "list", value: lateMs, threshold: limits.progressCheckMs, text };
    this.#foundCache("cache-progress-delayed", entry, row);
  }

  /** Reports a watch cache of a backend. `row.value`: how long the problem has lasted, in ms. */
  #foundCache(
    kind: CacheKind,
    { backend, cluster = "", resource }: Named & { readonly resource: string },
    row: Omit<EvidenceRow, "unit">,
  ): void {
    const { at, value, text } = row;
    const all = this.#caches[kind];
    all.set(backend, (all.get(backend) ?? new Set()).add(resource));
    const more = { backend, cluster, summary: `${backend}: ${text}`, startedAt: at - value };
    this.#store.found(findingOf(kind, backend, { ...row, unit: "ms" }, more), at);
  }

  #recovered(kind: CacheKind, entry: Named & { resource: string; version: string }, at: number): void {
    const { backend, resource, version } = entry;
    const left = this.#caches[kind].get(backend);
    left?.delete(resource);
    if (left?.size === 0) this.#end(kind, backend, `The cache of ${resource} reached ${version}`, at);
  }

  #endCaches(backend: string, ending: string, at: number): void {
    this.#end("backend-stale", backend, ending, at);
    this.#end("cache-progress-delayed", backend, ending, at);
  }

  #end(kind: CacheKind, backend: string, ending: string, at: number): void {
    this.#caches[kind].delete(backend);
    this.#store.end(kind, backend, ending, at);
  }

  #cost(entry: Entry): void {
    if (entry.kind === "watches.moved") {
      const { count: watchesMoved, slowestMs: slowestMoveMs, reason } = entry;
      this.#charge(entry.from, { watchesMoved, slowestMoveMs }, "", reason);
    } else if (entry.kind === "watches.ended") {
      this.#charge(entry.from, { watchesEnded: entry.count }, "", entry.reason);
    } else if (entry.kind === "tunnel.ended" && entry.reason === "backend_dead") {
      this.#charge(entry.backend, { tunnelsEnded: 1 }, entry.client, "");
    } else if (entry.kind === "request.failed" && entry.origin === "backend") {
      const client = `${entry.client ?? ""} ${entry.userAgent ?? ""}`.trim();
      this.#charge(entry.backend ?? "", { requestsFailed: 1 }, client, "");
    }
  }

  /**
   * Adds an effect on clients, such as a moved watch, to the backend's incident. If the backend is only suspect, keeps
   * the effect for an incident that may follow. Ignores effects that no backend caused, such as a watch that was moved
   * by rebalancing, by an operator or by a drain, or that ended because its resource no longer exists.
   */
  #charge(backend: string, impact: Partial<Impact>, client: string, reason: string): void {
    if (backend === "" || ["rebalance", "operator", "drained", "not_found"].includes(reason)) return;
    const stale = reason === "stale" ? this.#store.find("backend-stale", backend) : undefined;
    const incident = stale ?? this.#downOf(backend);
    if (incident === undefined) return this.#courses.get(backend)?.charge(impact, client);
    addImpact(incident.impact, impact);
    if (client !== "") addClient(incident.affected, client);
  }
}
