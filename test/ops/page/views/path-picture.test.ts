import { suite } from "uvu";
import * as assert from "uvu/assert";
import { movesOf, pathInWords, placedBands, streamsAt } from "../../../../src/ops/page/views/path-picture.js";
import { recordedOf } from "../../../support/page.ts";

const test = suite("ops/page/views/path-picture");

const recorded = recordedOf({
  "cp-2": { state: [0, 4], "streams-node": [8, 0], "streams-kubectl": [1, 0], movedOut: [0, 9] },
  "cp-1": { state: [0, 0], "streams-node": [7, 15], "streams-kubectl": [0, 1], movedIn: [0, 9] },
  gone: { state: [0, null], "streams-node": [5, null] },
});

test("streams are added up by kind of client and by backend, for the step that is shown", () => {
  const { sources, targets } = streamsAt(recorded, 1, (name) => (name === "cp-2" ? "dead" : "ready"));
  assert.equal(sources, [
    { name: "nodes", streams: 15 },
    { name: "kubectl", streams: 1 },
  ]);
  assert.equal(
    targets.map(({ name, state, streams }) => [name, state, streams]),
    [
      ["cp-1", "ready", 16],
      ["cp-2", "dead", 0],
    ],
  );
  assert.is(
    pathInWords({ sources, targets }),
    "Open requests. From nodes 15, kubectl 1. To cp-1 ready 16, cp-2 dead 0.",
  );
  assert.equal(movesOf(targets), [{ from: "cp-2", to: "cp-1", count: 9 }]);
});

test("without moves no dots travel, and without streams there are words", () => {
  const { sources, targets } = streamsAt(recorded, 7, () => "ready");
  assert.equal([sources, targets, movesOf(targets)], [[], [], []]);
  assert.is(pathInWords({ sources, targets }), "Open requests. From no clients. To no backends.");
});

test("bands do not overlap, and one without streams is still a line", () => {
  const bands = placedBands([100, 0, 50], 200, 2);
  assert.equal(
    bands.map(({ width }) => width),
    [50, 1.5, 25],
  );
  for (const [at, band] of bands.entries()) {
    const next = bands[at + 1];
    if (next === undefined) continue;
    assert.ok(next.inner - next.width / 2 >= band.inner + band.width / 2 - 1e-9);
    assert.ok(next.outer - band.outer >= 38);
  }
});

test.run();
