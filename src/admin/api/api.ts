/** The paths of the JSON API and their content (docs/admin-api.md). Reads only. */
import type { Incident } from "../../incidents/incident.ts";
import type { Json, JsonObject, Page } from "../http/listing.ts";
import { failed, jsonReply, type Reply, type Routes } from "../http/reply.ts";
import type { Times } from "../http/times.ts";
import { incidentView } from "./incident-listing.ts";

/** By the last part of their path: "watches" is `/api/v1/watches`. */
export type Pages = ReadonlyMap<string, Page>;

export type ApiParts = {
  readonly pages: Pages;
  readonly incident: (id: number) => Incident | undefined;
  readonly stats: () => JsonObject;
} & Pick<Times, "timeOf" | "now">;

const root = "/api/v1/";

/** Redirects the path without its trailing slash, as it is often typed. */
const indexReply: Reply = { ...jsonReply(308, { kind: "Redirect", location: root }), location: root };

/** Paths that return one object instead of a list. */
const singles = new Map<string, (parts: ApiParts) => Json>([
  ["", (parts) => indexOf(parts)],
  ["stats", ({ stats }) => stats()],
]);

/** Returns undefined for an unknown path. */
export function createApi(parts: ApiParts): Routes {
  return (path) => {
    if (`${path}/` === root) return () => indexReply;
    if (!path.startsWith(root)) return undefined;
    const [name = "", id, ...rest] = path.slice(root.length).split("/");
    if (rest.length > 0) return undefined;
    const single = id === undefined ? singles.get(name) : undefined;
    if (single !== undefined) return () => jsonReply(200, single(parts));
    const page = parts.pages.get(name);
    if (page === undefined) return undefined;
    if (id === undefined) return async (query) => listed((await page.sliced?.(query)) ?? page(query), parts);
    return name === "incidents" ? () => oneIncident(id, parts) : undefined;
  };
}

function indexOf({ pages }: ApiParts): Json {
  return { kind: "Index", paths: Array.from([...pages.keys(), "stats"], (name) => root + name) };
}

function listed(page: ReturnType<Page>, { timeOf, now }: ApiParts): Reply {
  return typeof page === "string" ? failed(400, page) : jsonReply(200, { at: timeOf(now()), ...page });
}

function oneIncident(id: string, { incident, timeOf, now }: ApiParts): Reply {
  const found = /^\d{1,9}$/.test(id) ? incident(Number(id)) : undefined;
  if (found === undefined) return failed(404, "There is no such incident, or it is no longer kept");
  return jsonReply(200, incidentView(found, timeOf, now()));
}
