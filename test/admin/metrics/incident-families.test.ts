import { suite } from "uvu";
import * as assert from "uvu/assert";
import { incidentFamilies } from "../../../src/admin/metrics/incident-families.ts";
import { Tally } from "../../../src/admin/metrics/tally.ts";
import { Journal } from "../../../src/events/journal.ts";
import { manualClock } from "../../support/clock.ts";
import { idle } from "../../support/snapshot.ts";

const test = suite("admin/incident-families");

const lock = {
  namespace: "n",
  name: "l",
  holder: "h",
  source: "10.0.0.7",
  renewedAtMs: 5000,
  verdict: "ghost",
};
const now = {
  ...idle,
  incidents: {
    counts: [{ kind: "backend-dead", backend: "a", count: 2 }],
    active: [
      { kind: "backend-dead", backend: "a" },
      { kind: "backend-dead", backend: "b" },
    ],
  },
  clients: { count: 7, requests: new Map([["kubelet", 9]]) },
  locks: [lock, { ...lock, name: "well", verdict: "ok" }],
};

function rowsOf(name: string): readonly unknown[] {
  const family = incidentFamilies.find((one) => one.name === name);
  return family?.rows(now, new Tally(new Journal(manualClock()))) ?? [];
}

test("what was wrong is counted, and what is wrong now is shown, with a 0 for all that is not", () => {
  assert.equal(rowsOf("incidents_total"), [[["backend-dead", "a"], 2]]);
  const active = rowsOf("incident_active");
  assert.equal(active.at(-1), [["backend-dead", "b"], 1]);
  assert.ok(active.some((row) => JSON.stringify(row) === '[["overload",""],0]'));
});

test("locks are shown with who renews them from where; only suspect ones with a verdict", () => {
  assert.equal(rowsOf("lease_holder_info")[0], [["n", "l", "h", "10.0.0.7"], 1]);
  assert.equal(rowsOf("lease_last_renew_timestamp_seconds")[0], [["n", "l"], 5]);
  assert.equal(rowsOf("lease_suspect"), [[["n", "l", "ghost"], 1]]);
});

test("clients are counted by program", () => {
  assert.equal([rowsOf("clients"), rowsOf("client_requests_total")], [[[[], 7]], [[["kubelet"], 9]]]);
});

test.run();
