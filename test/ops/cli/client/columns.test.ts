import { suite } from "uvu";
import * as assert from "uvu/assert";
import { views } from "../../../../src/ops/cli/client/columns.ts";
import { tableOf } from "../../../../src/ops/cli/client/table.ts";
import { kinds } from "../../../../src/ops/cli/commands/commands.ts";

const test = suite("ops/cli/client/columns");

test("a row of which nothing is known is a row of gaps", () => {
  for (const kind of kinds)
    for (const { head, of } of views[kind].columns) assert.type(of({}), "string", `${kind} ${head}`);
});

test("a client is shown in the shortest form there is; a lease that was never renewed shows none", () => {
  const who = views.clients.columns[0]?.of;
  assert.is(who?.({ subject: "", pod: "", agent: "kubelet", client: "10.0.0.7" }), "kubelet");
  const by = views.leases.columns.find(({ head }) => head === "RENEWED-BY")?.of;
  assert.is(by?.({ renewedBy: null }), "");
  assert.is(by?.({ renewedBy: { subject: "", pod: "n/web-0" } }), "n/web-0");
});

test("a backend shows the certificate that ends first", () => {
  const column = views.backends.columns.find(({ head }) => head === "LOOPBACK-CERT");
  const certificates = [86_400_000 * 9, 86_400_000 * 4].map((leftMs) => ({
    purpose: "backend-loopback",
    leftMs,
  }));
  assert.is(column?.of({ certificates: [...certificates, { purpose: "backend", leftMs: 1 }] }), "4d");
});

test("a limit is shown whole: its rate comes last, and must not be cut off", () => {
  const allows = "user=system:serviceaccount:ci:runner verb=list resource=secrets, 1/s, at most 5 at once";
  const { columns } = views.limits;
  assert.match(tableOf(columns, [{ name: "1", allows }], { isWide: false, hasHeads: true }), allows);
});

test("a certificate whose new files were refused is not ok, however long the last valid one lasts", () => {
  const expiry = views.certificates.columns.find(({ head }) => head === "EXPIRY")?.of;
  assert.is(expiry?.({ level: "ok", refused: "no pair" }), "! refused, last valid: ok");
  assert.is(expiry?.({ level: "none", refused: "no pair" }), "! refused, last valid: none");
  assert.is(expiry?.({ level: "ok", refused: "" }), "✓ ok");
});

test.run();
