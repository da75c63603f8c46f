import { suite } from "uvu";
import * as assert from "uvu/assert";
import { startProxy, type TestProxy } from "../support/proxy.ts";
import { within } from "../support/within.ts";

const test = suite("admin/admin-servers");

let proxy: TestProxy;
test.before(async () => {
  proxy = await startProxy({ backends: 1 });
});
test.after(() => proxy.stop());

async function seen(address: string, path: string): Promise<number> {
  const answer = await within(20_000, path, fetch(`http://${address}${path}`));
  await answer.text();
  return answer.status;
}

test("data for every client and data for this machine alone are on different ports", async () => {
  const { adminAddress, apiAddress } = proxy.running;
  assert.equal(
    [await seen(adminAddress, "/metrics"), await seen(adminAddress, "/api/v1/clients")],
    [200, 404],
  );
  assert.equal([await seen(apiAddress, "/metrics"), await seen(apiAddress, "/api/v1/clients")], [404, 200]);
});

test("all lists are there", async () => {
  for (const list of ["incidents", "backends", "watches", "clients", "leases", "certificates"])
    assert.is(await seen(proxy.running.apiAddress, `/api/v1/${list}`), 200, list);
});

test.run();
