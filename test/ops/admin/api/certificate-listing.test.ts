import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  type CertificateRow,
  certificateListing,
} from "../../../../src/ops/admin/api/certificate-listing.ts";
import { type JsonObject, pageOf } from "../../../../src/ops/admin/http/listing.ts";
import { timesOf } from "../../../../src/ops/admin/http/times.ts";
import { manualClock } from "../../../support/clock.ts";

const test = suite("ops/admin/api/certificate-listing");
const day = 86_400_000;
const clock = manualClock();

const page = async (
  rows: readonly CertificateRow[],
  now: number,
  { query = "", refusals = new Map<string, string>() } = {},
): Promise<JsonObject> => {
  const sources = { certificates: () => rows, refusals: () => refusals };
  const times = { ...timesOf(clock), wall: () => now };
  const outcome = await pageOf(certificateListing(sources, times), query, clock);
  if (typeof outcome === "string") throw new Error(outcome);
  return outcome;
};

test("the next to end comes first, and what is near is called so", async () => {
  const rows = [
    { purpose: "serving", name: "kube", notAfterMs: 400 * day },
    { purpose: "backend-loopback", name: "cp-1", notAfterMs: 30 * day },
  ];
  const all = await page(rows, 10 * day);
  assert.equal(all["items"], [
    {
      purpose: "backend-loopback",
      name: "cp-1",
      notAfter: "1970-01-31T00:00:00.000Z",
      leftMs: 20 * day,
      level: "soon",
      refused: "",
    },
    {
      purpose: "serving",
      name: "kube",
      notAfter: "1971-02-05T00:00:00.000Z",
      leftMs: 390 * day,
      level: "ok",
      refused: "",
    },
  ]);
  const near = await page(rows, 10 * day, { query: "level=soon" });
  assert.is(near["matching"], 1);
});

test("what was refused stands beside the last good one, and where there is none", async () => {
  const rows = [
    { purpose: "serving", name: "kube", notAfterMs: 20 * day },
    { purpose: "client-ca", name: "kube", notAfterMs: 30 * day },
    { purpose: "backend", name: "kube", notAfterMs: 40 * day },
  ];
  const refusals = new Map([
    ["kube client CA", "is empty"],
    ["kube/a.example", "no pair"],
  ]);
  const all = await page(rows, 0, { refusals });
  assert.equal(all["items"], [
    {
      purpose: "serving",
      name: "kube/a.example",
      notAfter: null,
      leftMs: null,
      level: "none",
      refused: "no pair",
    },
    ...["", "is empty", ""].map((refused, index) => ({
      purpose: rows[index]?.purpose,
      name: "kube",
      notAfter: new Date((20 + 10 * index) * day).toISOString(),
      leftMs: (20 + 10 * index) * day,
      level: "ok",
      refused,
    })),
  ]);
});

test.run();
