/** `/api/v1/backends`: each backend's state, since when and why, and its detectors' measurements. */
import type { Exchange } from "../../proxy/request/exchange.ts";
import type { BackendHistory, Change } from "../events/backend-history.ts";
import type { Json, Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import type { BackendFacts } from "../metrics/metric.ts";
import { type CertificateRow, certificateView } from "./certificate-listing.ts";

export type BackendSources = {
  readonly backends: () => readonly BackendFacts[];
  readonly live: () => readonly Exchange[];
  readonly history: BackendHistory;
  readonly addressOf: (backend: string) => string;
  readonly certificates: () => readonly CertificateRow[];
  /** Returns the resources whose watch cache has stalled on a backend. */
  readonly stalledWith: (backend: string) => readonly string[];
  readonly wall: () => number;
};

/** Open requests of one backend, by kind. */
type Load = { watches: number; plain: number; longRunning: number };

type Row = BackendFacts & { readonly load: Load };

export function backendListing(sources: BackendSources, times: Times): Listing<Row> {
  const since = ({ name }: Row): number => sources.history.of(name).at(-1)?.at ?? -1;
  return {
    kind: "BackendList",
    rows: () => rowsOf(sources),
    sort: "name",
    columns: {
      name: ({ name }) => name,
      state: ({ state }) => state,
      since,
      pingP99Ms: ({ pingP99Ms }) => pingP99Ms,
      watches: ({ load }) => load.watches,
      suspectMs: ({ suspectMs }) => suspectMs,
    },
    view: (row) => viewOf(row, sources, times),
  };
}

/** Counts the load of all backends in one pass over all open requests. */
function rowsOf({ backends, live }: BackendSources): readonly Row[] {
  const loads = new Map<string, Load>();
  for (const { backend, context } of live()) {
    const load = loads.get(backend) ?? { watches: 0, plain: 0, longRunning: 0 };
    if (context.kind === "watch") load.watches += 1;
    else if (context.kind === "plain") load.plain += 1;
    else load.longRunning += 1;
    loads.set(backend, load);
  }
  const none = { watches: 0, plain: 0, longRunning: 0 };
  return backends().map((backend) => ({ ...backend, load: loads.get(backend.name) ?? none }));
}

function viewOf(row: Row, sources: BackendSources, { timeOf, ageOf }: Times): Json {
  const { name, state, connections, pingP99Ms, suspectMs, isDrained, probes, load } = row;
  const history = sources.history.of(name);
  const last = history.at(-1);
  const changeView = ({ at, ...change }: Change): Json => ({ at: timeOf(at), ...change });
  return {
    name,
    address: sources.addressOf(name),
    state,
    since: last === undefined ? null : timeOf(last.at),
    sinceAgeMs: ageOf(last?.at ?? -1),
    reason: last?.reason ?? "",
    detector: last?.detector ?? "",
    // Tenths of a millisecond: more digits exceed the precision of the measurement.
    pingP99Ms: Math.round(pingP99Ms * 10) / 10,
    isDrained,
    suspectMs: Math.round(suspectMs),
    probes: { ok: probes.answers, failed: probes.failures, lastMs: Math.round(probes.lastMs) },
    upstreamConnections: connections.map(({ trust, kind, open, streams }) => ({
      class: trust,
      kind,
      open,
      streams,
    })),
    requests: { watches: load.watches, plain: load.plain, longRunning: load.longRunning },
    stalledResources: sources.stalledWith(name),
    certificates: sources
      .certificates()
      .filter((one) => one.name === name && one.purpose.startsWith("backend"))
      .map((one) => certificateView(one, sources.wall())),
    history: history.map(changeView),
  };
}
