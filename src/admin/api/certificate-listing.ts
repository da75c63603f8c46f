/** `/api/v1/certificates`: each certificate's expiry, and why a newer one could not be loaded. */
import { dateOf } from "../../base/clock.ts";
import { levelOf } from "../../incidents/certificate-expiry.ts";
import type { Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import type { CertificateFacts } from "../metrics/metric.ts";
import { type Fields, listingOf, maybeMs, oneOf, text } from "./fields.ts";

/** `notAfterMs` is NaN while there is no valid certificate; `refused` says why the current files could not be loaded. */
export type CertificateRow = CertificateFacts & { readonly refused?: string };

export type CertificateSources = {
  readonly certificates: () => readonly CertificateRow[];
  /** Returns the reasons of failed loads, by the certificates' names in the journal. */
  readonly refusals: () => ReadonlyMap<string, string>;
};

const purposes = ["serving", "backend", "backend-loopback", "backend-ca", "client-ca", "client"];

export const certificateFields = {
  purpose: oneOf("What it is for.", purposes, "purpose"),
  name: text("Name of the listener, the backend or the credential.", "name"),
  notAfter: {
    schema: {
      type: ["string", "null"],
      format: "date-time",
      description: "When it expires; null if there is no valid one.",
    },
    view: ({ notAfterMs }) => (Number.isNaN(notAfterMs) ? null : dateOf(notAfterMs).toISOString()),
    key: ({ notAfterMs }) => notAfterMs,
  },
  leftMs: maybeMs("Time until it expires; negative after that.", ({ notAfterMs }, { wall }) =>
    Number.isNaN(notAfterMs) ? null : Math.round(notAfterMs - wall()),
  ),
  level: oneOf(
    "How soon it expires.",
    ["ok", "soon", "now", "over", "none"],
    ({ notAfterMs, purpose }, { wall }) =>
      Number.isNaN(notAfterMs) ? "none" : levelOf(notAfterMs - wall(), purpose),
  ),
  refused: text(
    "Why the current content of its files could not be loaded; empty if it was.",
    ({ refused = "" }) => refused,
  ),
} satisfies Fields<CertificateRow>;

export function certificateListing(
  { certificates, refusals }: CertificateSources,
  times: Times,
): Listing<CertificateRow> {
  return listingOf(
    {
      kind: "CertificateList",
      rows: () => withRefusals(certificates(), refusals()),
      sort: "leftMs",
      fields: certificateFields,
      by: "purpose name leftMs level",
    },
    times,
  );
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
