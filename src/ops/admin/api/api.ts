/** Routes GET requests of the JSON API (docs/admin-api.md) to its lists, its statistics and single incidents. */
import type { Clock } from "../../../base/clock.ts";
import type { ReplicaRow } from "../../../fleet/replicas/replicas.ts";
import type { Exchange } from "../../../proxy/request/exchange.ts";
import type { IncidentStore } from "../../incidents/store.ts";
import type { History } from "../history/history.ts";
import { type JsonObject, type Page, pagesOf } from "../http/listing.ts";
import { failed, jsonReply, type Reply, type Route, type Routes } from "../http/reply.ts";
import { ReplyQueue } from "../http/reply-queue.ts";
import type { Times } from "../http/times.ts";
import { type BackendSources, backendListing } from "./backend-listing.ts";
import { certificateListing } from "./certificate-listing.ts";
import { type ClusterLedger, clientListing } from "./client-listing.ts";
import { viewOf } from "./fields.ts";
import { historyReply } from "./history-reply.ts";
import { incidentFields, incidentListing } from "./incident-listing.ts";
import { leaseListing } from "./lease-listing.ts";
import { type LimitRow, limitListing } from "./limit-listing.ts";
import { replicaListing } from "./replica-listing.ts";
import { watchDetail, watchListing } from "./watch-listing.ts";

/** The lists of the API, by the last part of their path: "watches" is served at `/api/v1/watches`. */
export type Pages = ReadonlyMap<string, Page>;

export type ListingSources = BackendSources & {
  readonly clock: Clock;
  readonly incidents: IncidentStore;
  readonly ledgers: () => readonly ClusterLedger[];
  readonly limits: () => readonly LimitRow[];
  readonly replicas: () => readonly ReplicaRow[];
};

export function apiPages(sources: ListingSources, times: Times): Pages {
  const { clock, incidents, ledgers, limits, live, certificates, replicas } = sources;
  const refusals = (): ReadonlyMap<string, string> => loadErrorsByCertificate(incidents);
  const all = (): IncidentStore["all"] => incidents.all;
  return new Map([
    ["incidents", pagesOf(incidentListing(all, times), clock)],
    ["backends", pagesOf(backendListing(sources, times), clock)],
    ["watches", pagesOf(watchListing(live, times), clock)],
    ["clients", pagesOf(clientListing(ledgers, times), clock)],
    ["leases", pagesOf(leaseListing(ledgers, times), clock)],
    ["limits", pagesOf(limitListing(limits, times), clock)],
    ["replicas", pagesOf(replicaListing(replicas, times), clock)],
    ["certificates", pagesOf(certificateListing({ certificates, refusals }, times), clock)],
  ]);
}

function loadErrorsByCertificate({ active }: IncidentStore): ReadonlyMap<string, string> {
  const refused = active.filter(({ kind }) => kind === "certificate-refused");
  return new Map(refused.map(({ subject, evidence }) => [subject, evidence.at(-1)?.text ?? ""]));
}

export type ApiParts = {
  readonly pages: Pages;
  readonly incidents: Pick<IncidentStore, "byId">;
  readonly live: () => readonly Exchange[];
  /**
   * Resolves with the watch that has this audit ID, if a worker serves it, else undefined. Default: the process has no
   * workers.
   */
  readonly watchElsewhere?: ((id: string) => Promise<JsonObject | undefined>) | undefined;
  readonly stats: () => JsonObject;
  readonly history: Pick<History, "text">;
  readonly times: Times;
  readonly clock: Clock;
};

const root = "/api/v1/";

/** Redirects `/api/v1` to `/api/v1/`, because operators often type the path without its last slash. */
const indexReply: Reply = { ...jsonReply(308, { kind: "Redirect", location: root }), location: root };

export function createApi(parts: ApiParts): Routes {
  const { pages, stats, history, times } = parts;
  const routes = new Map<string, Route>([
    ...Array.from(pages, ([name, page]): [string, Route] => [
      name,
      async (query) => listed(await page.read(query), times),
    ]),
    ["stats", () => jsonReply(200, stats())],
    ["history", (query) => historyReply(history, query)],
  ]);
  const details = new Map<string, (id: string) => Route>([
    ["incidents", (id) => () => oneIncident(id, parts)],
    ["watches", (id) => () => oneWatch(id, parts)],
  ]);
  const paths = Array.from(routes.keys(), (name) => root + name);
  const queue = new ReplyQueue();
  const queued = (route: Route | undefined): Route | undefined => route && queue.wrap(route);
  routes.set("", () => jsonReply(200, { kind: "Index", paths }));
  return (path) => {
    if (`${path}/` === root) return () => indexReply;
    if (!path.startsWith(root)) return undefined;
    const [name = "", id, ...rest] = path.slice(root.length).split("/");
    if (rest.length > 0) return undefined;
    if (id !== undefined) return queued(details.get(name)?.(id));
    return queued(routes.get(name));
  };
}

function listed(page: JsonObject | string, { timeOf, now }: Times): Reply {
  return typeof page === "string" ? failed(400, page) : jsonReply(200, { at: timeOf(now()), ...page });
}

function oneIncident(id: string, { incidents, times }: ApiParts): Reply {
  const found = /^\d{1,9}$/.test(id) ? incidents.byId(Number(id)) : undefined;
  if (found === undefined) return failed(404, "There is no such incident, or it is no longer kept");
  return jsonReply(200, viewOf(incidentFields, found, times));
}

async function oneWatch(id: string, { live, watchElsewhere, ...parts }: ApiParts): Promise<Reply> {
  const decoded = decodedId(id);
  const found = (await watchDetail(live(), decoded, parts)) ?? (await watchElsewhere?.(decoded));
  return found === undefined ? failed(404, "No open watch has this audit ID") : jsonReply(200, found);
}

function decodedId(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    return "";
  }
}
