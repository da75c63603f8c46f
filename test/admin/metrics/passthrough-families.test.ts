import { suite } from "uvu";
import * as assert from "uvu/assert";
import { passthroughFamilies } from "../../../src/admin/metrics/passthrough-families.ts";
import { Tally } from "../../../src/admin/metrics/tally.ts";
import { Journal } from "../../../src/events/journal.ts";
import { manualClock } from "../../support/clock.ts";
import { idle } from "../../support/snapshot.ts";

const test = suite("admin/passthrough-families");

const journal = new Journal(manualClock());
const told = new Tally(journal);
const passthrough = { counts: new Map([["cp-1", 3]]), bytes: { sent: 5, received: 7 } };

function rows(name: string): unknown {
  return passthroughFamilies.find((one) => one.name === name)?.rows({ ...idle, passthrough }, told);
}

test("sockets are told by their backend, bytes by their direction", () => {
  assert.equal(rows("passthrough_connections"), [[["cp-1"], 3]]);
  assert.equal(rows("passthrough_bytes_total"), [
    [["sent"], 5],
    [["received"], 7],
  ]);
});

test("ends are told by their reason, refusals by who caused them", () => {
  const who = { client: "10.0.0.9", listener: "nodes" };
  const ended = { ...who, backend: "cp-1", serverName: "", durationMs: 1, sent: 1, received: 1 };
  for (const reason of ["ended", "ended", "backend dead"])
    journal.write({ kind: "passthrough.ended", ...ended, reason });
  journal.write({ kind: "passthrough.refused", ...who, code: "no-backend", origin: "proxy", message: "x" });
  assert.equal(rows("passthrough_connections_ended_total"), [
    [["cp-1", "ended"], 2],
    [["cp-1", "backend dead"], 1],
  ]);
  assert.equal(rows("passthrough_connections_refused_total"), [[["no-backend", "proxy"], 1]]);
});

test.run();
