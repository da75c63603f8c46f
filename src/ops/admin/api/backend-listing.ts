/** `/api/v1/backends`: the state of each backend, when and why it changed, and what the detectors measured. */
import type { Clock } from "../../../base/clock.ts";
import { inSlices } from "../../../base/slices.ts";
import type { Exchange } from "../../../proxy/request/exchange.ts";
import type { BackendHistory, Change } from "../events/backend-history.ts";
import type { Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import type { BackendStatus } from "../metrics/metric.ts";
import { type BackendPart, type OpenRequestCounts, partOf, withParts } from "./backend-parts.ts";
import { type CertificateRow, certificateFields } from "./certificate-listing.ts";
import {
  age,
  count,
  type Fields,
  flag,
  list,
  listingOf,
  maybeMs,
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
  readonly clock: Clock;
  readonly backends: () => readonly BackendStatus[];
  readonly live: () => readonly Exchange[];
  readonly history: BackendHistory;
  readonly addressOf: (backend: string) => string;
  readonly certificates: () => readonly CertificateRow[];
  /** Returns the resources whose watch cache has stalled on a backend. */
  readonly stalledWith: (backend: string) => readonly string[];
  /** Returns what the canaries have shown about a backend, one text for each certificate; default: nothing. */
  readonly identitiesOf?: (backend: string) => readonly string[];
  /** Resolves with what the workers of this process have measured; default: the process has no workers. */
  readonly parts?: (() => Promise<readonly BackendPart[]>) | undefined;
};

type BackendRow = BackendStatus & BackendPart & { readonly sources: BackendSources };

const changesOf = ({ name, sources }: BackendRow): readonly Change[] => sources.history.of(name);
const last = (row: BackendRow): Change | undefined => changesOf(row).at(-1);

/** Rounds to tenths of a millisecond, because the measurements are not more precise than that. */
function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}

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

const shieldFields = {
  cap: count("Maximum number of concurrent lists; 0: the shield is down.", "cap"),
  waiting: count("Lists that wait for their turn.", "waiting"),
  refused: count("Lists that got 429.", "refused"),
} satisfies Fields<BackendStatus["shield"]>;

const requestFields = {
  watches: count("Open watches.", "watches"),
  plain: count("Other requests.", "plain"),
  longRunning: count("Other long-running requests, such as kubectl logs -f.", "longRunning"),
} satisfies Fields<OpenRequestCounts>;

const loadFields = {
  streams: count("Load by which backends are compared, in open streams.", ({ streams }) =>
    Math.round(streams),
  ),
  capacity: number(
    "Share of its weight that the backend can serve, by the time that its reads take; 1 if it is as fast as the others.",
    ({ capacity }) => Math.round(capacity * 100) / 100,
  ),
  utilization: number(
    "The utilisation that the backend reports (endpoint-load-metrics); -1: none.",
    ({ utilization }) => Math.round((utilization ?? -1) * 1000) / 1000,
  ),
  requestsPerSecond: number(
    "Requests per second, except watches, as an average over 10 s.",
    ({ requestsPerSecond }) => Math.round(requestsPerSecond * 10) / 10,
  ),
  getMs: number("Average time of reads of one object, in ms.", ({ getMs }) => Math.round(getMs * 10) / 10),
  listMs: number("Average time until a list begins, in ms.", ({ listMs }) => Math.round(listMs * 10) / 10),
  tooManyRequests: count("Responses with status 429, except those of evictions.", "refusals"),
} satisfies Fields<BackendStatus["load"]>;

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
  pingP99Ms: number("99th percentile of PING round trips, in ms.", ({ pingP99Ms }) => tenths(pingP99Ms)),
  watchLagMs: maybeMs(
    "How long the backend's watches have not delivered the oldest write that they lack, in ms; 0 if they lack none; null if no watch there shows all writes to a resource.",
    ({ watchLagMs }) => (watchLagMs === undefined ? null : tenths(watchLagMs)),
  ),
  watchDelayMs: maybeMs(
    "Longest delay of a write on the backend's watches in the last 10 to 20 s, in ms; null if no watch there shows all writes to a resource.",
    ({ watchDelay }) => (watchDelay === undefined ? null : tenths(watchDelay.delayMs)),
  ),
  watchDelayResource: text(
    'The resource with this delay, "group/name"; "" if none.',
    ({ watchDelay }) => watchDelay?.resource ?? "",
  ),
  isDrained: flag("True if an operator drains the backend.", "isDrained"),
  suspectMs: count("Total time in state suspect, in ms.", ({ suspectMs }) => Math.round(suspectMs)),
  probes: record(probeFields, "probes"),
  shield: record(shieldFields, "shield"),
  upstreamConnections: list(
    "Connections to the backend, by class and kind.",
    connectionFields,
    "connections",
  ),
  requests: record(requestFields, "openRequests"),
  load: record(loadFields, "load"),
  stalledResources: words("Resources whose watch cache has stalled.", ({ stalled }) => stalled),
  unreachableAPIs: words(
    "Aggregated API groups whose server the backend cannot reach, although another backend can.",
    "unreachableApis",
  ),
  identities: words(
    'Whether the backend accepts the identities that the proxy asserts, for each certificate: "front-proxy: proven".',
    ({ name, sources }) => sources.identitiesOf?.(name) ?? [],
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
      by: "name state since pingP99Ms watchDelayMs suspectMs",
      columns: { watches: ({ openRequests }) => openRequests.watches },
    },
    times,
  );
}

function rowsOf(sources: BackendSources): Promise<readonly BackendRow[]> {
  const own = backendPartsOf(sources);
  const rows = (parts: readonly BackendPart[], others: readonly BackendPart[]): readonly BackendRow[] => {
    const byName = new Map(parts.map((part) => [part.name, withParts(part, others)]));
    return sources.backends().map((facts) => ({
      ...facts,
      ...(byName.get(facts.name) ?? partOf(facts, none, [])),
      sources,
    }));
  };
  const { parts: elsewhere } = sources;
  if (elsewhere === undefined) return own.then((parts) => rows(parts, []));
  return Promise.all([own, elsewhere()]).then(([parts, others]) => rows(parts, others));
}

/**
 * Resolves with this process's own measurements for each row of the list. Counts open requests in time slices, because
 * there may be 50,000 of them.
 */
export function backendPartsOf(
  sources: Pick<BackendSources, "clock" | "live" | "backends" | "stalledWith">,
): Promise<readonly BackendPart[]> {
  const open = new Map<string, { watches: number; plain: number; longRunning: number }>();
  return new Promise((resolve) => {
    inSlices(
      sources.clock,
      sources.live(),
      ({ backend, context }) => {
        const counts = open.get(backend) ?? { watches: 0, plain: 0, longRunning: 0 };
        if (context.kind === "watch") counts.watches += 1;
        else if (context.kind === "plain") counts.plain += 1;
        else counts.longRunning += 1;
        open.set(backend, counts);
      },
      () =>
        resolve(
          sources
            .backends()
            .map((facts) => partOf(facts, open.get(facts.name) ?? none, sources.stalledWith(facts.name))),
        ),
    );
  });
}

const none: OpenRequestCounts = { watches: 0, plain: 0, longRunning: 0 };
