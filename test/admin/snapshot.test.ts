import { suite } from "uvu";
import * as assert from "uvu/assert";
import { createMetrics } from "../../src/admin/metrics.ts";
import { snapshots } from "../../src/admin/snapshot.ts";
import { Field } from "../../src/h2/field.ts";
import { bearer, PlayedPath } from "../support/path.ts";

const test = suite("admin/snapshot");

test("a scrape shows what the path has done", async () => {
  const path = new PlayedPath(["a"]);
  const snapshot = snapshots({
    version: "1.2.3",
    journal: path.journal,
    views: () => path.backends.views,
    upstreams: path.upstreams,
    detectors: (name) => path.detectors(name),
    exchanges: path.exchanges,
    hedges: path.hedges,
    hold: path.hold,
    moves: path.moves,
    timeTravel: path.timeTravel,
    upgrades: () => 2,
    passthrough: { counts: new Map([["a", 4]]), bytes: { sent: 1, received: 2 } },
    sessions: () => ({ h2: 1, h1: 0 }),
    handshakeErrors: () => 3,
    queuedBytes: () => 7,
    config: () => ({ isGood: true, loadedAtMs: 1000 }),
    discovery: () => undefined,
    certificates: () => [{ purpose: "serving", name: "kube", notAfterMs: 5000 }],
    droppedLogLines: () => 0,
    incidents: { counts: [], active: [] },
    talk: path.talk,
    clock: path.clock,
  });
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
