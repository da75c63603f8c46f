/**
 * `/api/v1/limits`: the limits on requests, set by configuration or operators, and how many requests each limit has
 * refused.
 */
import { dateOf } from "../../../base/clock.ts";
import type { Limit } from "../../../proxy/limits/limit.ts";
import type { Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import { clusterField } from "./client-listing.ts";
import { count, type Fields, listingOf, maybeMs, oneOf, text } from "./fields.ts";

/** A limit in the list. `cluster`: "" if there is only one cluster, or if the limit applies to all clusters. */
export type LimitRow = { readonly cluster: string; readonly limit: Limit };

export const limitFields = {
  name: text(
    "Name in the configuration; an operator's limit has a number.",
    ({ limit }: LimitRow) => limit.name,
  ),
  cluster: clusterField,
  origin: oneOf("Where the limit was set.", ["config", "operator"], ({ limit }) =>
    limit.origin === undefined ? "config" : "operator",
  ),
  allows: text("Which requests the limit counts, and how many of them may pass.", ({ limit }) =>
    String(limit),
  ),
  scope: oneOf(
    "Replica: this process allows the whole limit; AllReplicas: all replicas together do.",
    ["Replica", "AllReplicas"],
    ({ limit }) => limit.config.scope,
  ),
  sharers: count("Number of processes among which the limit is divided.", ({ limit }) => limit.sharers),
  inFlight: count("Requests in progress; 0 if their number is not limited.", ({ limit }) => limit.inFlight),
  passed: count("Requests that the limit has counted and let pass.", ({ limit }) => limit.passed),
  refused: count("Requests that got 429.", ({ limit }) => limit.refused),
  by: text('Operator who set the limit; "": the configuration.', ({ limit }) => limit.origin?.by ?? ""),
  reason: text("The operator's reason.", ({ limit }) => limit.origin?.reason ?? ""),
  endsAt: text('When the limit ends by itself, in UTC; "": never.', ({ limit: { origin } }) =>
    origin === undefined ? "" : dateOf(origin.endsMs).toISOString(),
  ),
  leftMs: maybeMs("Time until then.", ({ limit: { origin } }, { wall }) =>
    origin === undefined ? null : Math.max(0, Math.round(origin.endsMs - wall())),
  ),
} satisfies Fields<LimitRow>;

export function limitListing(rows: () => readonly LimitRow[], times: Times): Listing<LimitRow> {
  return listingOf(
    {
      kind: "LimitList",
      rows,
      sort: "-refused",
      fields: limitFields,
      by: "name cluster origin allows scope sharers inFlight passed refused by reason leftMs",
    },
    times,
  );
}
