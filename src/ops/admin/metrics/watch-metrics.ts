/** Declares the metrics of watches and of the backends' watch caches. */
import { limits } from "../../../base/limits.ts";
import type { Sample } from "./exposition.ts";
import { backendCap, backendIn } from "./labels.ts";
import type { Metric } from "./metric.ts";

export const watchMetrics: readonly Metric[] = [
  {
    name: "watches",
    help: "Open watches by state; only live watches can be moved to another backend",
    labels: ["state"],
    cluster: ({ path }) => path.exchanges.watched.states,
  },
  {
    name: "watches_parked",
    help: "Watches that lost their backend and wait for another one",
    cluster: ({ path }) => path.migrations.waiting,
  },
  {
    name: "watch_events_total",
    help: "Watch events forwarded to clients, by the backend that delivered them first",
    labels: ["backend"],
    cluster: ({ path }) => path.exchanges.watched.events,
  },
  {
    name: "watch_event_bytes_total",
    help: "Bytes of the forwarded watch events",
    cluster: ({ path }) => path.exchanges.watched.bytes,
  },
  {
    name: "watch_moves_total",
    help: "Watches that watchkeeper moved to another backend without the client noticing, by reason of the move",
    labels: ["reason"],
    cluster: ({ path }) => path.migrations.moves,
  },
  {
    name: "watch_ends_total",
    help: "Watches that watchkeeper ended between two events, by reason; the client opens the watch again",
    labels: ["reason"],
    cluster: ({ path }) => path.migrations.ends,
  },
  {
    name: "watch_hedges_total",
    help: "Ended hedges of watches, by the backend that was silent or late, and by outcome: the watch continued on its first stream (first), on a second stream (hedge), or on none of the two (neither)",
    labels: ["backend", "outcome"],
    cap: 3 * backendCap,
    cluster: ({ label, path: { migrations } }) =>
      migrations.lives.hedges.all.map(({ backend, key, count }) => [[backendIn(label, backend), key], count]),
  },
  {
    name: "watch_bookmark_refreshes_total",
    help: "Short second upstream streams of watches, opened to get a bookmark from the watch's own backend after another backend has restarted",
    cluster: ({ path }) => path.migrations.refreshes,
  },
  {
    name: "watch_sentinels",
    help: "Resources with a sentinel: a watch that two backends serve at the same time, so that watchkeeper can compare their caches",
    cluster: ({ path }) => path.detectors.sentinels.count,
  },
  {
    name: "watch_sentinel_streams_total",
    help: "Second upstream streams opened for sentinels, which are watches that two backends serve at the same time",
    cluster: ({ path }) => path.migrations.sentinels,
  },
  {
    name: "watch_progress_requests_total",
    help: "Lists of one object, with the watch's own credentials, that make an apiserver ask etcd for its progress, by result: answered, refused (for example by RBAC) or unanswered",
    labels: ["result"],
    cluster: ({ path }) => Object.entries(path.refresher.progressRequests),
  },
  {
    name: "backend_watches",
    help: "Streams of watches at the backend, by resource; without those that cannot be decoded",
    labels: ["backend", "resource"],
    cap: limits.watchSeries,
    cluster: ({ label, path: { caches } }) =>
      caches.watched.map(({ backend, resource, watches }) => [
        [backendIn(label, backend), resource],
        watches,
      ]),
  },
  {
    name: "watch_lag_seconds",
    across: "max",
    help: "Time for which watches of the backend have not delivered the oldest write that they lack; 0 if they lack none. No value for a backend without a watch of a whole resource",
    labels: ["backend"],
    cluster: ({ backendStatuses }) =>
      backendStatuses.flatMap(({ name, watchLagMs }): Sample[] =>
        watchLagMs === undefined ? [] : [[[name], watchLagMs / 1000]],
      ),
  },
  {
    name: "watch_version_regressions_total",
    help: "Watch events with a lower version than an earlier event of the same watch; watchkeeper never moves such a watch",
    cluster: ({ path }) => path.exchanges.watched.versionRegressions,
  },
  {
    name: "watch_replay_loops_total",
    help: "Findings of a client that opens the same watch from the same version again and again; each client counts at most once a minute",
    labels: ["resource"],
    counted: { "watch.replay_loop": ({ resource }) => [resource] },
  },
  {
    name: "watched_apis",
    across: "max",
    help: "Watched API groups and versions that are not built in, by kind: custom (watchkeeper resumes and compares their watches), aggregated or unknown (it does neither)",
    labels: ["kind"],
    cluster: ({ path }) => Object.entries(path.origins.counts),
  },
  {
    name: "stalled_caches",
    across: "max",
    help: "Watch caches that are stalled now, one a resource and backend",
    cluster: ({ path }) => path.migrations.stalls,
  },
  {
    name: "cache_stalls_total",
    help: "How often a watch cache of the backend was found stalled, by detector",
    labels: ["backend", "detector"],
    cap: 2 * backendCap,
    counted: { "cache.stalled": ({ backend, detector }) => [backend, detector] },
  },
  {
    name: "stale_responses_total",
    help: "Responses to lists and new watches older than the client had seen",
    cluster: ({ path }) => path.staleReadGuard.counts.outdated,
  },
  {
    name: "stale_read_guard_requests_total",
    help: "Reads with resourceVersion=0 rewritten to a minimum version, by result",
    labels: ["result"],
    cluster: ({ path: { staleReadGuard } }) => [
      ["rewritten", staleReadGuard.counts.demanded],
      ["refused", staleReadGuard.counts.refused],
    ],
  },
];
