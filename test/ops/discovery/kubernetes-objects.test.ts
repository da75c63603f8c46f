import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import {
  addressesInLeases,
  addressesInSlice,
  peerAddress,
} from "../../../src/ops/discovery/kubernetes-objects.ts";

const test = suite("ops/discovery/kubernetes-objects");

const metadata = { name: "kubernetes" };
const most = limits.discoveredBackends;

test("every ready address of the slice is an apiserver, at the port named https", () => {
  const places = addressesInSlice({
    metadata,
    endpoints: [
      { addresses: ["10.0.0.1", "10.0.0.2"], conditions: { ready: true } },
      { addresses: ["10.0.0.3"], conditions: { ready: false } },
      { addresses: ["10.0.0.4"], conditions: {} },
      { addresses: ["fd00::5"] },
    ],
    ports: [
      { name: "other", port: 1 },
      { name: "https", port: 6443 },
    ],
  });
  assert.equal(
    places.map(({ host, port }) => `${host} ${port}`),
    ["10.0.0.1 6443", "10.0.0.2 6443", "10.0.0.4 6443", "fd00::5 6443"],
  );
  const unnamed = addressesInSlice({ metadata, endpoints: [{ addresses: ["::1"] }], ports: [{ port: 443 }] });
  assert.equal(unnamed, [{ host: "::1", port: 443 }]);
});

test("a slice of another name, or with more addresses than backends are allowed, is refused whole", () => {
  const ports = [{ port: 1 }];
  const endpoints = [{ addresses: ["10.0.0.1"] }];
  const other = { metadata: { name: "kubernetes-x" }, endpoints, ports };
  assert.throws(() => addressesInSlice(other), "is not the EndpointSlice kubernetes");
  const slice = (count: number): object => ({
    metadata,
    endpoints: Array.from({ length: count / 5 }, (_, at) => ({
      addresses: Array.from({ length: 5 }, (_one, nth) => `10.0.${at % 250}.${nth}`),
    })),
    ports,
  });
  assert.is(addressesInSlice(slice(most - (most % 5))).length, most - (most % 5));
  assert.throws(() => addressesInSlice(slice(most + 5)), `more than ${most} apiservers`);
  const crowd = slice(55_000);
  const startedAt = performance.now();
  assert.throws(() => addressesInSlice(crowd), `endpoints: more than ${most} apiservers`);
  assert.ok(performance.now() - startedAt < 100);
});

let nth = 0;

function lease(address: unknown, spec: unknown = {}) {
  nth += 1;
  const letter = String.fromCharCode("a".charCodeAt(0) + (nth % 26));
  return {
    metadata: { name: `apiserver-${letter.repeat(26)}`, annotations: { [peerAddress]: address } },
    spec,
  };
}

const hostsIn = (items: readonly unknown[], now = 0): readonly string[] =>
  addressesInLeases({ metadata: {}, items }, now).map(({ host }) => host);

test("a Lease says where its apiserver is, until it has run out", () => {
  const now = Date.parse("2026-11-20T12:00:00Z");
  const hosts = hostsIn(
    [
      lease("10.0.0.1:6443", { leaseDurationSeconds: 3600, renewTime: "2026-11-20T11:59:50.123456Z" }),
      lease("10.0.0.2:6443", { leaseDurationSeconds: 3600, renewTime: "2026-11-20T10:59:59Z" }),
      lease("[fd00::3]:6443", { leaseDurationSeconds: 3600, renewTime: 7 }),
      lease("10.0.0.4:6443"),
    ],
    now,
  );
  assert.equal(hosts, ["10.0.0.1", "fd00::3", "10.0.0.4"]);
});

test("a Lease without a host's address is skipped, so that it does not stop discovery", () => {
  const useless = ["cp-1", "fd00::1:6443", ":1", "10.0.0.1:0", "10.0.0.1:70000", "224.0.0.1:1", "127.1:1", 7];
  const without = [{}, { metadata: {} }, { metadata: null, spec: null }, ...useless.map((one) => lease(one))];
  assert.equal(hostsIn([...without, lease("10.0.0.9:6443")]), ["10.0.0.9"]);
});

test("a Lease whose name is not that of an identity Lease is skipped", () => {
  const named = (name: unknown): object => ({
    ...lease("10.0.0.1:1"),
    metadata: { ...lease("10.0.0.1:1").metadata, name },
  });
  const names = [
    "kube-scheduler",
    "apiserver-1",
    `apiserver-${"a".repeat(27)}`,
    `x-apiserver-${"a".repeat(26)}`,
    7,
  ];
  assert.equal(hostsIn(names.map(named)), []);
});

/** Returns a Lease that was created at this second of the year 2026. */
function createdAt(second: number, address: string): object {
  const { metadata: usual, spec } = lease(address);
  const creationTimestamp = new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString();
  return { metadata: { ...usual, creationTimestamp }, spec };
}

test("of more Leases than backends are allowed, the oldest are read, which no other client can have created", () => {
  const foreign = Array.from({ length: 200 }, (_, at) => createdAt(1000 + at, `10.9.${at}.1:6443`));
  const own = [1, 2, 3].map((at) => createdAt(at, `10.0.0.${at}:6443`));
  const found = hostsIn([...foreign.slice(100), ...own, ...foreign.slice(0, 100)]);
  assert.equal([found.length, ...found.slice(0, 4)], [most, "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.9.0.1"]);
  assert.equal(hostsIn([lease("10.0.0.8:1"), ...own]).at(-1), "10.0.0.8", "one without a time comes last");
});

test.run();
