/** `/api/v1/backends`: the state of each backend, when and why it changed, and what the detectors measured. */
import type { Exchange } from "../../proxy/request/exchange.ts";
import type { BackendHistory, Change } from "../events/backend-history.ts";
import type { Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import type { BackendStatus } from "../metrics/metric.ts";
import { type CertificateRow, certificateFields } from "./certificate-listing.ts";
import {
  age,
  count,
  type Fields,
  flag,
  list,
  listingOf,
  maybeTime,
  number,
  oneOf,
  record,
  ref,
  text,
  time,
  words,
} from "./fields.ts";

export type BackendSources = {
  readonly backends: () => readonly BackendStatus[];
  readonly live: () => readonly Exchange[];
  readonly history: BackendHistory;
  readonly addressOf: (backend: string) => string;
  readonly certificates: () => readonly CertificateRow[];
  /** Returns the resources whose watch cache has stalled on a backend. */
  readonly stalledWith: (backend: string) => readonly string[];
};

type OpenRequestCounts = { watches: number; plain: number; longRunning: number };

type BackendRow = BackendStatus & { readonly load: OpenRequestCounts; readonly sources: BackendSources };

const changesOf = ({ name, sources }: BackendRow): readonly Change[] => sources.history.of(name);
const last = (row: BackendRow): Change | undefined => changesOf(row).at(-1);

const connectionFields = {
  class: text("Trust class.", "trust"),
  kind: text("Kind of requests: long or plain.", "kind"),
  open: count("Open connections.", "open"),
  streams: count("Requests on those connections.", "streams"),
} satisfies Fields<BackendStatus["connections"][number]>;

const probeFields = {
  ok: count("Successful probes.", "answers"),
  failed: count("Failed probes.", "failures"),
  lastMs: count("Duration of the last probe, in ms.", ({ lastMs }) => Math.round(lastMs)),
} satisfies Fields<BackendStatus["probes"]>;

const loadFields = {
  watches: count("Open watches.", "watches"),
  plain: count("Other requests.", "plain"),
  longRunning: count("Other long-running requests, such as kubectl logs -f.", "longRunning"),
} satisfies Fields<OpenRequestCounts>;

const changeFields = {
  at: time("When the state changed.", "at"),
  from: text("The state before.", "from"),
  to: text("The state after.", "to"),
  detector: text("What detected it.", "detector"),
  valueMs: number("The measured value, in ms.", "valueMs"),
  limitMs: number("The limit, in ms.", "limitMs"),
  reason: text("Why the state changed.", "reason"),
} satisfies Fields<Change>;

export const backendFields = {
  name: text("The name that the configuration or discovery gives the backend.", "name"),
  address: text('"host:port".', ({ name, sources }) => sources.addressOf(name)),
  version: text('The version that it reports ("v1.36.1"); "" if unknown.', "version"),
  state: oneOf("The verdict.", ["unknown", "ready", "suspect", "dead", "draining"], "state"),
  since: maybeTime("When the state began.", (row) => last(row)?.at ?? -1),
  sinceAgeMs: age("Time since the state began.", (row) => last(row)?.at ?? -1),
  reason: text("Why the backend has this state.", (row) => last(row)?.reason ?? ""),
  detector: text("What detected it.", (row) => last(row)?.detector ?? ""),
  // Rounded to tenths of a millisecond, because the measurement is no more precise.
  pingP99Ms: number(
    "99th percentile of PING round trips, in ms.",
    ({ pingP99Ms }) => Math.round(pingP99Ms * 10) / 10,
  ),
  isDrained: flag("True if an operator drains the backend.", "isDrained"),
  suspectMs: count("Total time in state suspect, in ms.", ({ suspectMs }) => Math.round(suspectMs)),
  probes: record(probeFields, "probes"),
  upstreamConnections: list(
    "Connections to the backend, by class and kind.",
    connectionFields,
    "connections",
  ),
  requests: record(loadFields, "load"),
  stalledResources: words("Resources whose watch cache has stalled.", ({ name, sources }) =>
    sources.stalledWith(name),
  ),
  certificates: list(
    "The certificates that the backend presents.",
    certificateFields,
    ({ name, sources }) =>
      sources.certificates().filter((one) => one.name === name && one.purpose.startsWith("backend")),
    ref("Certificate"),
  ),
  history: list("The last 64 changes of state, oldest first.", changeFields, changesOf),
} satisfies Fields<BackendRow>;

export function backendListing(sources: BackendSources, times: Times): Listing<BackendRow> {
  return listingOf(
    {
      kind: "BackendList",
      rows: () => rowsOf(sources),
      sort: "name",
      fields: backendFields,
      by: "name state since pingP99Ms suspectMs",
      columns: { watches: ({ load }) => load.watches },
    },
    times,
  );
}

/** Returns a row for each backend. Visits the open requests, of which there may be 50,000, once for all rows. */
function rowsOf(sources: BackendSources): readonly BackendRow[] {
  const loads = new Map<string, OpenRequestCounts>();
  for (const { backend, context } of sources.live()) {
    const load = loads.get(backend) ?? { watches: 0, plain: 0, longRunning: 0 };
    if (context.kind === "watch") load.watches += 1;
    else if (context.kind === "plain") load.plain += 1;
    else load.longRunning += 1;
    loads.set(backend, load);
  }
  const none = { watches: 0, plain: 0, longRunning: 0 };
  return sources.backends().map((facts) => ({ ...facts, load: loads.get(facts.name) ?? none, sources }));
}
