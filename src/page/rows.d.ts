/** Types of the JSON API's objects (docs/admin-api.md), which follow from the declarations of their fields. */
import type { backendFields } from "../admin/api/backend-listing.ts";
import type { certificateFields } from "../admin/api/certificate-listing.ts";
import type { callerFields, clientFields } from "../admin/api/client-listing.ts";
import type { ViewOf } from "../admin/api/fields.ts";
import type { incidentFields } from "../admin/api/incident-listing.ts";
import type { leaseFields } from "../admin/api/lease-listing.ts";
import type { watchFields } from "../admin/api/watch-listing.ts";

export type { Stats } from "../admin/api/stats.ts";

export type List<Row> = {
  readonly at: string;
  readonly total: number;
  readonly matching: number;
  readonly offset: number;
  readonly items: readonly Row[];
};

export type Caller = ViewOf<typeof callerFields>;
export type Incident = ViewOf<typeof incidentFields>;
export type Backend = ViewOf<typeof backendFields>;
export type Change = Backend["history"][number];
export type CertificateRow = ViewOf<typeof certificateFields>;
export type Watch = ViewOf<typeof watchFields>;
export type ClientRow = ViewOf<typeof clientFields>;
export type Lease = ViewOf<typeof leaseFields>;
