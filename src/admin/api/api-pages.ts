/** The lists of the JSON API, by the last part of their path. */
import type { Clock } from "../../base/clock.ts";
import type { IncidentStore } from "../../incidents/store.ts";
import { type Listing, type Page, pageOf, slicedPageOf } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import type { Pages } from "./api.ts";
import { type BackendSources, backendListing } from "./backend-listing.ts";
import { certificateListing } from "./certificate-listing.ts";
import { clientListing, type Talking } from "./client-listing.ts";
import { incidentListing } from "./incident-listing.ts";
import { leaseListing } from "./lease-listing.ts";
import { watchListing } from "./watch-listing.ts";

export type ListingSources = BackendSources & {
  readonly clock: Clock;
  readonly incidents: IncidentStore;
  readonly talks: () => readonly Talking[];
};

export function apiPages(sources: ListingSources, times: Times): Pages {
  const { incidents, talks, live, certificates, wall } = sources;
  const paged = pagedBy(sources.clock);
  return new Map([
    ["incidents", paged(incidentListing(() => incidents.all, times))],
    ["backends", paged(backendListing(sources, times))],
    ["watches", paged(watchListing(live, times))],
    ["clients", paged(clientListing(talks, times))],
    ["leases", paged(leaseListing(talks, times))],
    [
      "certificates",
      paged(certificateListing({ certificates, wall, refusals: () => refusalsIn(incidents) })),
    ],
  ]);
}

function pagedBy(clock: Clock): <T>(listing: Listing<T>) => Page {
  return (listing) => {
    const { kind, sort, columns } = listing;
    return Object.assign((query: string) => pageOf(listing, query), {
      listing: { kind, sort, columns: Object.keys(columns) },
      sliced: (query: string) => slicedPageOf(listing, query, clock),
    });
  };
}

/** Certificates and keys that could not be loaded, by their names in the journal, each with the latest reason. */
function refusalsIn({ active }: IncidentStore): ReadonlyMap<string, string> {
  const refused = active.filter(({ kind }) => kind === "certificate-refused");
  return new Map(refused.map(({ subject, evidence }) => [subject, evidence.at(-1)?.text ?? ""]));
}
