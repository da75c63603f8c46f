/** The proxy's live objects as the plain numbers that metrics show; asked once a scrape. */
import type { BackendView } from "../health/backend.ts";
import type { Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import type { Exchanges } from "../proxy/exchanges.ts";
import type { Upstreams } from "../proxy/upstreams.ts";
import type { Snapshot } from "./metrics.ts";

/** What main has at hand. */
export type Live = {
  readonly version: string;
  readonly journal: Journal;
  readonly views: () => readonly BackendView[];
  readonly upstreams: Upstreams;
  readonly exchanges: Exchanges;
  readonly upgrades: () => number;
  readonly sessions: () => Snapshot["sessions"];
  readonly handshakeErrors: () => number;
  readonly queuedBytes: () => number;
  readonly config: () => Snapshot["config"];
  readonly certificates: () => Snapshot["certificates"];
  readonly droppedLogLines: () => number;
};

export function snapshots(live: Live): () => Snapshot {
  const refused = countReasons(live.journal);
  return () => {
    const { exchanges } = live;
    const { events, bytes } = exchanges.watched;
    return {
      version: live.version,
      backends: live
        .views()
        .map(({ name, state }) => ({ name, state, lanes: lanesOf(live.upstreams, name) })),
      sessions: live.sessions(),
      handshakeErrors: live.handshakeErrors(),
      exchanges: [
        { kind: "plain", active: exchanges.active("plain") },
        { kind: "watch", active: exchanges.active("watch") },
        { kind: "long-running", active: exchanges.active("long-running") },
        { kind: "upgrade", active: live.upgrades() },
      ],
      requests: exchanges.counts,
      refusedSessions: [...refused].map(([reason, count]) => ({ reason, count })),
      resets: Object.entries(exchanges.ends).map(([reason, count]) => ({ reason, count })),
      watchEvents: events,
      watchEventBytes: bytes,
      bufferedBytes: live.queuedBytes(),
      config: live.config(),
      certificates: live.certificates(),
      droppedLogLines: live.droppedLogLines(),
    };
  };
}

function lanesOf(upstreams: Upstreams, backend: string): Snapshot["backends"][number]["lanes"] {
  return (upstreams.lanesOf(backend)?.rows ?? []).map(({ key, lanes }) => ({
    trust: key.trust,
    kind: key.kind,
    open: lanes.length,
    streams: lanes.reduce((sum, lane) => sum + lane.openCount, 0),
  }));
}

/** Sessions that we ended for breaking a rule, by the rule; its wording is ours, so there are few. */
function countReasons(journal: Journal): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  journal.subscribe((entry) => {
    if (entry.kind !== "session.refused") return;
    const reason = counts.size < limits.familySeries || counts.has(entry.reason) ? entry.reason : "other";
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  });
  return counts;
}
