/** Types of the JSON API's objects (docs/admin-api.md), derived from the declarations of their fields. */
import type { backendFields } from "../../admin/api/backend-listing.ts";
import type { certificateFields } from "../../admin/api/certificate-listing.ts";
import type { callerFields, clientFields } from "../../admin/api/client-listing.ts";
import type { ViewOf } from "../../admin/api/fields.ts";
import type { incidentFields } from "../../admin/api/incident-listing.ts";
import type { leaseFields } from "../../admin/api/lease-listing.ts";
import type { replicaFields } from "../../admin/api/replica-listing.ts";
import type { watchDetailFields, watchFields } from "../../admin/api/watch-listing.ts";

export type { Stats } from "../../admin/api/stats.ts";

export type List<Row> = {
  readonly at: string;
  readonly total: number;
  readonly matching: number;
  readonly offset: number;
  readonly items: readonly Row[];
  readonly groups: readonly Group[];
};

export type Caller = ViewOf<typeof callerFields>;
export type Incident = ViewOf<typeof incidentFields>;
export type Backend = ViewOf<typeof backendFields>;
export type Change = Backend["history"][number];
export type CertificateRow = ViewOf<typeof certificateFields>;
export type Watch = ViewOf<typeof watchFields>;
export type WatchDetail = ViewOf<typeof watchDetailFields>;
export type ClientRow = ViewOf<typeof clientFields>;
export type Lease = ViewOf<typeof leaseFields>;
export type Replica = ViewOf<typeof replicaFields>;

/** The values of a series, one for each step; null: no value. */
export type Values = readonly (number | null)[];
export type Columns = Readonly<Record<string, Values>>;

/**
 * The history that the page has read. `startedMs`: when step 0 began, in ms since 1970. `first`: number of the step to
 * which the first value of each column belongs. `next`: number of the step after the last value.
 */
export type Recorded = {
  readonly startedMs: number;
  readonly stepMs: number;
  readonly first: number;
  readonly next: number;
  readonly process: Columns;
  readonly backends: ReadonlyMap<string, Columns>;
};

export type HistoryAnswer = {
  readonly startedAt: string;
  readonly stepMs: number;
  readonly first: number;
  readonly next: number;
  readonly process: Columns;
  readonly backends: readonly { readonly name: string; readonly series: Columns }[];
};

export type Group = { readonly value: string; readonly rows: number };
