import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  clusterFigures,
  type LiveCluster,
  past,
  summed,
} from "../../../src/admin/metrics/cluster-figures.ts";
import { bearer, PlayedPath } from "../../support/path.ts";

const test = suite("admin/cluster-figures");

/** A cluster whose only backend has answered so many lists, and was asked once more. */
function cluster(label: string, answers: number): LiveCluster & { readonly path: PlayedPath } {
  const backend = label === "" ? "a" : `${label}/a`;
  const path = new PlayedPath([backend]);
  const client = path.client();
  for (let asked = 0; asked < answers; asked += 1) {
    client.ask("GET", "/api/v1/pods", [bearer("t")]);
    path.settle();
    path.backend(backend).last.answer(200, "[]");
    path.settle();
  }
  client.ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  return {
    label,
    path,
    splices: { openCount: 1 },
    passthrough: { counts: new Map([[backend, 2]]), bytes: { sent: 3, received: 4 } },
    backends: {
      record: { lastSuccessAtMs: 1, failures: 2, found: 3 },
      addressOf: (name) => ({ name, host: "127.0.0.1", port: 1, tls: undefined }),
    },
  };
}

const figures = (one: ReturnType<typeof cluster>): ReturnType<typeof clusterFigures> =>
  clusterFigures(one, one.path.clock);

test("the numbers of several clusters are summed, and their backends stand side by side", () => {
  const all = summed([figures(cluster("eu", 2)), figures(cluster("us", 3))]);
  assert.equal(
    all.requests.map(({ backend, count }) => [backend, count]),
    [
      ["eu/a", 2],
      ["us/a", 3],
    ],
  );
  assert.equal(
    all.backends.map(({ name }) => name),
    ["eu/a", "us/a"],
  );
  assert.equal(
    [...all.passthrough.counts],
    [
      ["eu/a", 2],
      ["us/a", 2],
    ],
  );
  assert.equal(all.passthrough.bytes, { sent: 6, received: 8 });
  assert.is(all.durations.get("list")?.count, 5);
  assert.equal(
    all.discovery.map(({ cluster: name }) => name),
    ["eu", "us"],
  );
  assert.is(all.clients.count, 2);
});

test("the only cluster is told as it is", () => {
  const one = figures(cluster("", 1));
  assert.is(summed([one]), one);
  assert.is(one.requests[0]?.backend, "a");
  assert.is(one.discovery[0]?.cluster, "");
});

test("what a cluster has counted outlives it, and what it was does not", () => {
  const left = past(figures(cluster("eu", 2)));
  assert.equal(left.requests, [{ verb: "list", code: 200, backend: "other", count: 2 }]);
  assert.equal([left.backends, left.exchanges, left.discovery, left.locks], [[], [], [], []]);
  assert.equal([left.passthrough.counts.size, left.passthrough.bytes.sent, left.clients.count], [0, 3, 0]);
  const again = past(summed([left, figures(cluster("eu", 3))]));
  assert.equal(again.requests, [{ verb: "list", code: 200, backend: "other", count: 5 }]);
});

test.run();
