/** The proxy's live objects as the plain numbers that metrics show; asked once a scrape. */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";
import type { IncidentStore } from "../../incidents/store.ts";
import { type ClusterFigures, clusterFigures, type LiveCluster, past, summed } from "./cluster-figures.ts";
import type { Snapshot } from "./family.ts";

/** What main has at hand. */
export type Live = {
  readonly version: string;
  readonly journal: Journal;
  /** Those that serve, with those that are on their way out. */
  readonly clusters: () => readonly LiveCluster[];
  readonly sessions: () => { readonly h2: number; readonly h1: number };
  readonly handshakeErrors: () => number;
  readonly queuedBytes: () => number;
  readonly config: () => Snapshot["config"];
  readonly certificates: () => Snapshot["certificates"];
  readonly droppedLogLines: () => number;
  readonly incidents: Pick<IncidentStore, "counts" | "active">;
  readonly clock: Clock;
};

export class Snapshots {
  readonly #live: Live;
  readonly #refused: ReadonlyMap<string, number>;
  /** What clusters that are gone have counted. */
  #past: ClusterFigures | undefined;

  constructor(live: Live) {
    this.#live = live;
    this.#refused = countReasons(live.journal);
  }

  /** This cluster is shown for the last time: what it has counted stays in the sums. */
  gone(cluster: LiveCluster): void {
    const figures = clusterFigures(cluster, this.#live.clock);
    this.#past = past(this.#past === undefined ? figures : summed([this.#past, figures]));
  }

  read(): Snapshot {
    const live = this.#live;
    const figures = live.clusters().map((cluster) => clusterFigures(cluster, live.clock));
    return {
      version: live.version,
      ...summed(this.#past === undefined ? figures : [...figures, this.#past]),
      sessions: sessionsOf(live.sessions()),
      handshakeErrors: live.handshakeErrors(),
      refusedSessions: [...this.#refused].map(([reason, count]) => ({ reason, count })),
      bufferedBytes: live.queuedBytes(),
      config: live.config(),
      certificates: live.certificates(),
      droppedLogLines: live.droppedLogLines(),
      incidents: live.incidents,
    };
  }
}

function sessionsOf({ h2, h1 }: ReturnType<Live["sessions"]>): Snapshot["sessions"] {
  return [
    { alpn: "h2", open: h2 },
    { alpn: "http/1.1", open: h1 },
  ];
}

/** Sessions that we ended for breaking a rule, by the rule; its wording is ours, so there are few. */
function countReasons(journal: Journal): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  journal.subscribe((entry) => {
    if (entry.kind !== "downstream_connection.refused") return;
    const reason = counts.size < limits.familySeries || counts.has(entry.reason) ? entry.reason : "other";
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  });
  return counts;
}
