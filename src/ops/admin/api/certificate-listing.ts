/** `/api/v1/certificates`: when each certificate expires, and why its latest files could not be loaded. */
import { dateOf } from "../../../base/clock.ts";
import { levelOf } from "../../incidents/certificate-expiry.ts";
import type { Listing } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import type { CertificateFacts } from "../metrics/metric.ts";
import { type Fields, listingOf, maybeMs, oneOf, text } from "./fields.ts";

/** `notAfterMs`: NaN if no valid certificate is loaded. `refused`: why the latest version of its files was rejected. */
export type CertificateRow = CertificateFacts & { readonly refused?: string };

export type CertificateSources = {
  readonly certificates: () => readonly CertificateRow[];
  /** Returns why certificates could not be loaded, by the certificate's name in the journal. */
  readonly refusals: () => ReadonlyMap<string, string>;
};

const purposes = ["serving", "backend", "backend-loopback", "backend-ca", "client-ca", "client"];

export const certificateFields = {
  purpose: oneOf("What the certificate is for.", purposes, "purpose"),
  name: text("Name of the listener, the backend or the credential.", "name"),
  notAfter: {
    schema: {
      type: ["string", "null"],
      format: "date-time",
      description: "When the certificate expires; null if none is valid.",
    },
    view: ({ notAfterMs }) => (Number.isNaN(notAfterMs) ? null : dateOf(notAfterMs).toISOString()),
    key: ({ notAfterMs }) => notAfterMs,
  },
  leftMs: maybeMs(
    "Time until the certificate expires, in ms; negative after that.",
    ({ notAfterMs }, { wall }) => (Number.isNaN(notAfterMs) ? null : Math.round(notAfterMs - wall())),
  ),
  level: oneOf(
    "How soon the certificate expires.",
    ["ok", "soon", "now", "over", "none"],
    ({ notAfterMs, purpose }, { wall }) =>
      Number.isNaN(notAfterMs) ? "none" : levelOf(notAfterMs - wall(), purpose),
  ),
  refused: text(
    "Why the current content of the files could not be loaded; empty if it was loaded.",
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

/**
 * Adds to each certificate's row the reason why the latest version of its files was not loaded. Adds a row for each
 * name in `refusals` that has none, because no version of its files has been valid so far.
 */
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

function nameInJournal({ purpose, name }: CertificateRow): string | undefined {
  if (purpose === "backend" || purpose === "backend-loopback") return undefined;
  return purpose === "client-ca" ? `${name} client CA` : name;
}
