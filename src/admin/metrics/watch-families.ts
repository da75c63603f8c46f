/** The metric families that tell of watches: how they stand, and what became of those that lost their backend. */
import type { Family } from "./family.ts";
import type { Row } from "./series.ts";

const byKey = (counts: ReadonlyMap<string, number>): Row[] =>
  Array.from(counts, ([key, count]): Row => [[key], count]);

export const watchFamilies: readonly Family[] = [
  {
    type: "counter",
    name: "watch_events_total",
    help: "Watch events passed on whole",
    labels: [],
    rows: ({ watchEvents }) => [[[], watchEvents]],
  },
  {
    type: "counter",
    name: "watch_event_bytes_total",
    help: "Bytes of those events",
    labels: [],
    rows: ({ watchEventBytes }) => [[[], watchEventBytes]],
  },
  {
    type: "gauge",
    name: "watches",
    help: "Open watches, by how far they are known: only live ones can go on elsewhere",
    labels: ["state"],
    rows: ({ watches }) => byKey(watches.states),
  },
  {
    type: "gauge",
    name: "watches_parked",
    help: "Watches that lost their backend and wait to be asked for elsewhere",
    labels: [],
    rows: ({ watches }) => [[[], watches.waiting]],
  },
  {
    type: "counter",
    name: "watch_moves_total",
    help: "Watches that went on elsewhere without their clients knowing, by reason",
    labels: ["reason"],
    rows: ({ watches }) => byKey(watches.moves),
  },
  {
    type: "counter",
    name: "watch_ends_total",
    help: "Watches that ended between two events although their clients wanted more of them, by reason",
    labels: ["reason"],
    rows: ({ watches }) => byKey(watches.ends),
  },
  {
    type: "counter",
    name: "watch_hedges_total",
    help: "Second legs that were opened beside a silent one",
    labels: [],
    rows: ({ watches }) => [[[], watches.hedges]],
  },
  {
    type: "counter",
    name: "watch_bookmark_refreshes_total",
    help: "Short second legs for a bookmark, after a backend came back that knows nothing of what was before",
    labels: [],
    rows: ({ watches }) => [[[], watches.refreshes]],
  },
  {
    type: "gauge",
    name: "watch_sentinels",
    help: "Resources of which one watch is served by two backends, which are compared",
    labels: [],
    rows: ({ watches }) => [[[], watches.sentinels]],
  },
  {
    type: "gauge",
    name: "watched_apis",
    help: "Watched APIs (a group and version each) that are not built in, by what they were found to be: those of a CRD are resumed and compared, aggregated and unknown ones are not",
    labels: ["kind"],
    rows: ({ watches: { origins } }) => [
      [["custom"], origins.custom],
      [["aggregated"], origins.aggregated],
      [["unknown"], origins.unknown],
    ],
  },
  {
    type: "counter",
    name: "watch_sentinel_streams_total",
    help: "Second legs that were asked for such watches",
    labels: [],
    rows: ({ watches }) => [[[], watches.sentinelLegs]],
  },
  {
    type: "counter",
    name: "watch_progress_requests_total",
    help: "Lists of one object, under a watch's own identity, that make an apiserver ask etcd how far it is, by result: answered, refused (by RBAC, say) or unanswered",
    labels: ["result"],
    rows: ({ watches: { progressRequests } }) => [
      [["answered"], progressRequests.answered],
      [["refused"], progressRequests.refused],
      [["unanswered"], progressRequests.unanswered],
    ],
  },
  {
    type: "counter",
    name: "watch_version_regressions_total",
    help: "Events older than what the same backend had shown before: such a watch is never moved",
    labels: [],
    rows: ({ watches }) => [[[], watches.violations]],
  },
  {
    type: "gauge",
    name: "stalled_caches",
    help: "Resources whose cache at some backend stands still while others go on",
    labels: [],
    rows: ({ watches }) => [[[], watches.stalls]],
  },
  {
    type: "counter",
    name: "cache_stalls_total",
    help: "Caches that were found to stand still, by backend and by what showed it",
    labels: ["backend", "detector"],
    rows: (_, { cacheStalls }) => cacheStalls.rows,
  },
  {
    type: "counter",
    name: "watch_replay_loops_total",
    help: "Clients found asking for one watch from one version again and again, once a minute each",
    labels: ["resource"],
    rows: (_, { watchLoops }) => watchLoops.rows,
  },
  {
    type: "counter",
    name: "stale_responses_total",
    help: "Lists and initial states from before what their client had seen of the resource",
    labels: [],
    rows: ({ watches }) => [[[], watches.timeTravel.outdated]],
  },
  {
    type: "counter",
    name: "stale_read_guard_requests_total",
    help: "Requests for any state that were asked for none from before what their client had seen, by result",
    labels: ["result"],
    rows: ({ watches: { timeTravel } }) => [
      [["rewritten"], timeTravel.demanded],
      [["refused"], timeTravel.refused],
    ],
  },
];
