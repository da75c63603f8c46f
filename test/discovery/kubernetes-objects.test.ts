import { suite } from "uvu";
import * as assert from "uvu/assert";
import { addressesInLeases, addressesInSlices, peerAddress } from "../../src/discovery/kubernetes-objects.ts";

const test = suite("discovery/kubernetes-objects");

test("every ready address of the slices is an apiserver, at the port named https", () => {
  const places = addressesInSlices([
    {
      endpoints: [
        { addresses: ["10.0.0.1", "10.0.0.2"], conditions: { ready: true } },
        { addresses: ["10.0.0.3"], conditions: { ready: false } },
        { addresses: ["10.0.0.4"], conditions: {} },
        { addresses: ["10.0.0.5"] },
      ],
      ports: [
        { name: "other", port: 1 },
        { name: "https", port: 6443 },
      ],
    },
    { endpoints: [{ addresses: ["fd00::1"] }], ports: [{ port: 443 }] },
    { endpoints: [{ addresses: ["10.0.0.6"] }] },
    {},
  ]);
  assert.equal(
    places.map(({ host, port }) => `${host} ${port}`),
    ["10.0.0.1 6443", "10.0.0.2 6443", "10.0.0.4 6443", "10.0.0.5 6443", "fd00::1 443"],
  );
});

function lease(address: string, spec: object = {}) {
  return { metadata: { annotations: { [peerAddress]: address } }, spec };
}

test("a Lease says where its apiserver is, until it has run out", () => {
  const now = Date.parse("2026-11-20T12:00:00Z");
  const places = addressesInLeases(
    [
      lease("10.0.0.1:6443", { leaseDurationSeconds: 3600, renewTime: "2026-11-20T11:59:50.123456Z" }),
      lease("10.0.0.2:6443", { leaseDurationSeconds: 3600, renewTime: "2026-11-20T10:59:59Z" }),
      lease("[fd00::3]:6443", { leaseDurationSeconds: 3600, renewTime: new Date(now) }),
      lease("10.0.0.4:6443"),
    ],
    now,
  );
  assert.equal(
    places.map(({ host }) => host),
    ["10.0.0.1", "fd00::3", "10.0.0.4"],
  );
});

test("a Lease without an address, or with something else there, says nothing", () => {
  assert.equal(
    addressesInLeases([{}, { metadata: {} }, lease("cp-1"), lease("fd00::1:6443"), lease(":1")], 0),
    [],
  );
});

test.run();
