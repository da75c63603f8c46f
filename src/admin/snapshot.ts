/** The proxy's live objects as the plain numbers that metrics show; asked once a scrape. */
import type { Clock } from "../clock.ts";
import type { BackendView } from "../health/backend.ts";
import type { IncidentStore } from "../incidents/store.ts";
import type { Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import type { Exchanges } from "../proxy/exchanges.ts";
import type { Moves } from "../proxy/moves.ts";
import type { Detectors } from "../proxy/path.ts";
import type { Talk } from "../proxy/talk.ts";
import type { TimeTravel } from "../proxy/time-travel.ts";
import type { Upstreams } from "../proxy/upstreams.ts";
import type { Snapshot } from "./metrics.ts";

/** What main has at hand. */
export type Live = {
  readonly version: string;
  readonly journal: Journal;
  readonly views: () => readonly BackendView[];
  readonly upstreams: Upstreams;
  /** Of one backend, by its name. */
  readonly detectors: (backend: string) => Detectors;
  readonly exchanges: Exchanges;
  readonly hedges: { readonly count: number };
  readonly hold: { readonly size: number };
  readonly moves: Moves;
  readonly timeTravel: Pick<TimeTravel, "counts">;
  readonly upgrades: () => number;
  readonly passthrough: Snapshot["passthrough"];
  readonly sessions: () => { readonly h2: number; readonly h1: number };
  readonly handshakeErrors: () => number;
  readonly queuedBytes: () => number;
  readonly config: () => Snapshot["config"];
  readonly discovery: () => Snapshot["discovery"];
  readonly certificates: () => Snapshot["certificates"];
  readonly droppedLogLines: () => number;
  readonly incidents: Pick<IncidentStore, "counts" | "active">;
  readonly talk: Pick<Talk, "ledger" | "locks">;
  readonly clock: Clock;
};

export function snapshots(live: Live): () => Snapshot {
  const refused = countReasons(live.journal);
  return () => {
    const { exchanges } = live;
    const { events, bytes, violations, states } = exchanges.watched;
    const { moves, ends, shadows, renewals, waiting, stalls } = live.moves;
    return {
      version: live.version,
      backends: live.views().map(({ name, state }) => ({
        name,
        state,
        lanes: lanesOf(live.upstreams, name),
        ...live.detectors(name),
      })),
      sessions: sessionsOf(live.sessions()),
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
      watches: {
        states,
        waiting,
        moves,
        ends,
        shadows,
        renewals,
        violations,
        stalls,
        timeTravel: live.timeTravel.counts,
      },
      passthrough: { counts: live.passthrough.counts, bytes: live.passthrough.bytes },
      bufferedBytes: live.queuedBytes(),
      hedges: live.hedges.count,
      heldRequests: live.hold.size,
      config: live.config(),
      discovery: live.discovery(),
      certificates: live.certificates(),
      droppedLogLines: live.droppedLogLines(),
      ...seenBy(live),
    };
  };
}

/** What is wrong, who talks, who holds the locks, and how long answers took. */
function seenBy(live: Live): Pick<Snapshot, "incidents" | "clients" | "locks" | "durations"> {
  const { ledger } = live.talk;
  return {
    incidents: live.incidents,
    clients: { count: ledger.size, requests: ledger.requestsByAgent },
    locks: locksOf(live),
    durations: live.exchanges.durations,
  };
}

/** Each node renews a lease of its own: 5,000 of them tell nobody anything. */
function locksOf({ talk, clock }: Live): Snapshot["locks"] {
  const now = clock.now();
  return talk.locks.all
    .filter(({ name }) => name.namespace !== "kube-node-lease")
    .map((lock) => ({
      namespace: lock.name.namespace,
      name: lock.name.name,
      holder: lock.holder,
      source: lock.renewers.at(-1)?.caller.address ?? "",
      renewedAtMs: clock.wall() - (now - lock.renewedAt),
      verdict: lock.verdictAt(now)?.verdict ?? "ok",
    }));
}

function sessionsOf({ h2, h1 }: ReturnType<Live["sessions"]>): Snapshot["sessions"] {
  return [
    { alpn: "h2", open: h2 },
    { alpn: "http/1.1", open: h1 },
  ];
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
