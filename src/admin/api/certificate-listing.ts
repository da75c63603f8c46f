/** `/api/v1/certificates`: until when each certificate is valid, and which newer one was not taken in its place. */
import { dateOf } from "../../base/clock.ts";
import { levelOf } from "../../incidents/certificate-expiry.ts";
import type { Json, Listing } from "../http/listing.ts";
import type { CertificateFacts } from "../metrics/metric.ts";

/** `notAfterMs` is NaN while there is no good one, `refused` why what its files hold is not taken. */
export type CertificateRow = CertificateFacts & { readonly refused?: string };

export type CertificateSources = {
  readonly certificates: () => readonly CertificateRow[];
  /** By the names under which the journal tells of what was not taken. */
  readonly refusals: () => ReadonlyMap<string, string>;
  /** Milliseconds since 1970. */
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

/** `wall`: the present time, in milliseconds since 1970. */
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

/** What was refused stands where the last good one does; a host that never had one has a row all the same. */
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

/** Undefined: it is a backend's own, and refused by nobody here. */
function nameInJournal({ purpose, name }: CertificateRow): string | undefined {
  if (purpose === "backend" || purpose === "backend-loopback") return undefined;
  return purpose === "client-ca" ? `${name} client CA` : name;
}
