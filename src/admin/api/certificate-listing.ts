/** `/api/v1/certificates`: each certificate's expiry, and why a newer one could not be loaded. */
import { dateOf } from "../../base/clock.ts";
import { levelOf } from "../../incidents/certificate-expiry.ts";
import type { Json, Listing } from "../http/listing.ts";
import type { CertificateFacts } from "../metrics/metric.ts";

/** `notAfterMs` is NaN while there is no valid certificate; `refused` says why the current files could not be loaded. */
export type CertificateRow = CertificateFacts & { readonly refused?: string };

export type CertificateSources = {
  readonly certificates: () => readonly CertificateRow[];
  /** Returns the reasons of failed loads, by the certificates' names in the journal. */
  readonly refusals: () => ReadonlyMap<string, string>;
  /** Returns milliseconds since 1970. */
  readonly wall: () => number;
};

export function certificateListing(sources: CertificateSources): Listing<CertificateRow> {
  const { wall } = sources;
  const levelNow = (row: CertificateRow): string => levelAt(row, wall());
  return {
    kind: "CertificateList",
    rows: () => withRefusals(sources.certificates(), sources.refusals()),
    sort: "leftMs",
    columns: {
      purpose: ({ purpose }) => purpose,
      name: ({ name }) => name,
      leftMs: ({ notAfterMs }) => (Number.isNaN(notAfterMs) ? -1 : notAfterMs - wall()),
      level: levelNow,
    },
    view: (row) => certificateView(row, wall()),
  };
}

/** `wall` is the present time in milliseconds since 1970. */
export function certificateView(row: CertificateRow, wall: number): Json {
  const { purpose, name, notAfterMs, refused = "" } = row;
  const isThere = !Number.isNaN(notAfterMs);
  return {
    purpose,
    name,
    notAfter: isThere ? dateOf(notAfterMs).toISOString() : null,
    leftMs: isThere ? Math.round(notAfterMs - wall) : null,
    level: levelAt(row, wall),
    refused,
  };
}

function levelAt({ notAfterMs, purpose }: CertificateRow, wall: number): string {
  return Number.isNaN(notAfterMs) ? "none" : levelOf(notAfterMs - wall, purpose);
}

/** Adds each failed load to the row of the last valid certificate; a host that never had one gets a row of its own. */
function withRefusals(
  rows: readonly CertificateRow[],
  refusals: ReadonlyMap<string, string>,
): readonly CertificateRow[] {
  const called = rows.map((row) => nameInJournal(row));
  const without = [...refusals].filter(([name]) => !called.includes(name));
  return [
    ...rows.map((row, index) => ({ ...row, refused: refusals.get(called[index] ?? "") ?? "" })),
    ...without.map(([name, refused]) => ({ purpose: "serving", name, notAfterMs: Number.NaN, refused })),
  ];
}

/** Returns undefined for a backend's own certificate: it is not loaded from a file. */
function nameInJournal({ purpose, name }: CertificateRow): string | undefined {
  if (purpose === "backend" || purpose === "backend-loopback") return undefined;
  return purpose === "client-ca" ? `${name} client CA` : name;
}
