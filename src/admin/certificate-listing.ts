/** `/api/v1/certificates`: until when each certificate is valid. */
import { dateOf } from "../clock.ts";
import { levelOf } from "../expiry.ts";
import type { Json, Listing } from "./listing.ts";
import type { Snapshot } from "./metrics.ts";

export type CertificateRow = Snapshot["certificates"][number];

export function certificateListing(
  rows: () => readonly CertificateRow[],
  wall: () => number,
): Listing<CertificateRow> {
  return {
    kind: "CertificateList",
    rows,
    sort: "leftMs",
    columns: {
      purpose: ({ purpose }) => purpose,
      name: ({ name }) => name,
      leftMs: ({ notAfterMs }) => notAfterMs - wall(),
      level: ({ notAfterMs, purpose }) => levelOf(notAfterMs - wall(), purpose),
    },
    view: (row) => certificateView(row, wall()),
  };
}

/** `wall`: the present time, in milliseconds since 1970. */
export function certificateView({ purpose, name, notAfterMs }: CertificateRow, wall: number): Json {
  const leftMs = Math.round(notAfterMs - wall);
  return {
    purpose,
    name,
    notAfter: dateOf(notAfterMs).toISOString(),
    leftMs,
    level: levelOf(leftMs, purpose),
  };
}
