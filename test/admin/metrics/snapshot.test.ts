import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Snapshot } from "../../../src/admin/metrics/family.ts";
import { createMetrics } from "../../../src/admin/metrics/metrics.ts";
import { Snapshots } from "../../../src/admin/metrics/snapshot.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { bearer, PlayedPath } from "../../support/path.ts";

const test = suite("admin/snapshot");

/** Where backends are, of whom nobody asks. */
const nowhere = {
  record: undefined,
  addressOf: (name: string) => ({ name, host: "127.0.0.1", port: 1, tls: undefined }),
};

test("a scrape shows what the path has done", async () => {
  const path = new PlayedPath(["a"]);
  const snapshots = new Snapshots({
    version: "1.2.3",
    journal: path.journal,
    clusters: () => [
      {
        label: "",
        path,
        splices: { openCount: 2 },
        passthrough: { counts: new Map([["a", 4]]), bytes: { sent: 1, received: 2 } },
        backends: nowhere,
      },
    ],
    sessions: () => ({ h2: 1, h1: 0 }),
    handshakeErrors: () => 3,
    queuedBytes: () => 7,
    config: () => ({ isGood: true, loadedAtMs: 1000 }),
    certificates: () => [{ purpose: "serving", name: "kube", notAfterMs: 5000 }],
    droppedLogLines: () => 0,
    incidents: { counts: [], active: [] },
    clock: path.clock,
  });
  const snapshot = (): Snapshot => snapshots.read();
  const client = path.client();
  client.ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  path.backend("a").last.answer(200, "[]");
  path.settle();
  client.ask("GET", "/api/v1/pods?watch=1", [bearer("t")]);
  path.settle();
  const watch = path.backend("a").last;
  watch.side?.sendHeaders(
    [new Field(":status", "200"), new Field("content-type", "application/json")],
    false,
  );
  watch.say('{"type":"ADDED","object":{}}\n');
  path.settle();
  assert.equal([...snapshot().watches.states], [["listing", 1]]);
  client.downstream.receive(Buffer.from([0, 0, 7, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7]));
  path.settle();
  const { requests, watchEvents, refusedSessions, backends, hedges, heldRequests } = snapshot();
  assert.equal([hedges, heldRequests], [0, 0]);
  assert.equal(requests[0], { verb: "list", code: 200, backend: "a", count: 1 });
  assert.is(watchEvents, 1);
  assert.equal(refusedSessions, [{ reason: "PING of a wrong size", count: 1 }]);
  assert.is(backends[0]?.state, "ready");
  assert.equal([...snapshot().passthrough.counts], [["a", 4]]);
  assert.match(
    await createMetrics(path.journal, snapshot).metrics(),
    'watchkeeper_requests_total{verb="LIST"',
  );
});

test.run();
