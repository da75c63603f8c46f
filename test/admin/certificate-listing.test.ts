import { suite } from "uvu";
import * as assert from "uvu/assert";
import { certificateListing } from "../../src/admin/certificate-listing.ts";
import { pageOf } from "../../src/admin/listing.ts";

const test = suite("admin/certificate-listing");
const day = 86_400_000;

test("the next to end comes first, and what is near is called so", () => {
  const rows = [
    { purpose: "serving", name: "kube", notAfterMs: 400 * day },
    { purpose: "backend-loopback", name: "cp-1", notAfterMs: 30 * day },
  ];
  const page = pageOf(
    certificateListing(
      () => rows,
      () => 10 * day,
    ),
    "",
  );
  assert.equal(typeof page === "string" ? page : page["items"], [
    {
      purpose: "backend-loopback",
      name: "cp-1",
      notAfter: "1970-01-31T00:00:00.000Z",
      leftMs: 20 * day,
      level: "soon",
    },
    {
      purpose: "serving",
      name: "kube",
      notAfter: "1971-02-05T00:00:00.000Z",
      leftMs: 390 * day,
      level: "ok",
    },
  ]);
  const near = pageOf(
    certificateListing(
      () => rows,
      () => 10 * day,
    ),
    "level=soon",
  );
  assert.is(typeof near === "string" ? near : near["matching"], 1);
});

test.run();
