/** Turns the journal into incidents. It does no I/O and sets no timer: the caller calls `tick` at the time `dueAt`. */

import { limits } from "../../base/limits.ts";
import { Lru } from "../../base/lru.ts";
import type { Entry, EntryOf } from "../../events/journal.ts";
import { BackendFold } from "./backend-fold.ts";
import { endingIn, findingIn } from "./findings.ts";
import { incidentKinds } from "./kinds.ts";
import { incidentLimits } from "./limits.ts";
import { type Finding, findingOf, type IncidentStore } from "./store.ts";

export class Fold {
  readonly #store: IncidentStore;
  readonly #backends: BackendFold;
  readonly #stale = new StaleResponses();

  constructor(store: IncidentStore) {
    this.#store = store;
    this.#backends = new BackendFold(store);
  }

  take(entry: Entry, at: number): void {
    const { cluster = "" } = entry;
    this.#backends.take(entry, at);
    const finding = entry.kind === "response.stale" ? this.#stale.take(entry, at) : findingIn(entry, at);
    if (finding !== undefined) this.#store.found(withCluster(cluster, finding), at);
    const ending = endingIn(entry);
    for (const kind of ending?.kinds ?? [])
      if (ending !== undefined) this.#store.end(kind, subjectIn(cluster, ending), ending.ending, at);
    if (entry.kind === "cluster.removed" && cluster !== "") this.#removed(cluster, at);
  }

  /** Ends all incidents of a removed cluster, because no later entry can end them. */
  #removed(cluster: string, at: number): void {
    for (const { kind, subject, cluster: own } of this.#store.active)
      if (own === cluster) this.#store.end(kind, subject, "The cluster is no longer served", at);
  }

  /** Clock reading (ms) at which the owner must call `tick`; Infinity: not before the next entry. */
  get dueAt(): number {
    let { dueAt } = this.#backends;
    for (const { kind, lastSeenAt } of this.#store.active) {
      const { calmMs } = incidentKinds[kind];
      if (calmMs > 0) dueAt = Math.min(dueAt, lastSeenAt + calmMs);
    }
    return dueAt;
  }

  tick(at: number): void {
    this.#backends.tick(at);
    this.#store.calm(at);
  }
}

type About = { readonly subject: string };

/**
 * Returns an incident's subject, preceded by the name of its cluster, so that the same problem in two clusters makes
 * two incidents. The name of a backend or of a certificate already contains the name of its cluster.
 */
function subjectIn(cluster: string, { subject }: About): string {
  if (cluster === "" || ` ${subject}`.includes(` ${cluster}/`)) return subject;
  return subject === "" ? cluster : `${cluster}: ${subject}`;
}

function withCluster(cluster: string, finding: Finding): Finding {
  const subject = subjectIn(cluster, finding);
  if (subject === finding.subject) return { ...finding, cluster };
  return { ...finding, cluster, subject, summary: `${cluster}: ${finding.summary}` };
}

/**
 * Finds clients that repeatedly get stale responses. One stale response after a failover does no harm. A second one
 * within `quietMs` means that the client works with an outdated state. No I/O.
 */
export class StaleResponses {
  readonly #latest = new Lru<string, number>(limits.anomalies);

  take(entry: EntryOf<"response.stale">, at: number): Finding | undefined {
    const { client, userAgent, resource, backend, version, seen, cluster = "" } = entry;
    const name = `${client} ${userAgent}`.trim();
    const subject = `${name} ${resource}`;
    const key = `${cluster} ${subject}`;
    const before = this.#latest.get(key) ?? Number.NEGATIVE_INFINITY;
    this.#latest.set(key, at);
    if (at - before > incidentLimits.quietMs) return undefined;
    const text = `${backend} gave ${name} ${resource} at version ${version} again, after it had seen ${seen}`;
    const row = { at, detector: "list", value: 0, threshold: 0, unit: "" as const, text };
    return findingOf("version-regression", subject, row, { backend, client: name });
  }
}
