import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { bearer, PlayedPath } from "../../support/path.ts";
import { PlayedWatch } from "../../support/watch-path.ts";

const test = suite("proxy/loops");

const userAgent = new Field("user-agent", "controller/v1");

/** Watches that a client asks for one after the other, each of which delivers an event and ends. */
function watchAgain(path: PlayedPath, queries: readonly string[]): PlayedWatch[] {
  return queries.map((query) => {
    const watch = new PlayedWatch({ path, query, fields: [bearer("t"), userAgent] });
    watch.serve(watch.from, "+8a");
    watch.ear.stream.reset(8);
    path.clock.advance(1000);
    return watch;
  });
}

test("a client that asks from one version in a loop is named, once a minute (seed 001)", () => {
  const path = new PlayedPath(["a", "b"]);
  const queries = Array.from({ length: 40 }, (_, index) => `resourceVersion=7&timeoutSeconds=${300 + index}`);
  const [watch] = watchAgain(path, queries);
  assert.equal(watch?.entries("watch.replay_loop"), [
    {
      kind: "watch.replay_loop",
      client: "10.0.0.9",
      userAgent: "controller/v1",
      resource: "/configmaps",
      version: "7",
      times: limits.replays,
    },
  ]);
});

test("one that goes on is none, nor is one with as many selectors", () => {
  const path = new PlayedPath(["a", "b"]);
  const on = Array.from({ length: 20 }, (_, index) => `resourceVersion=${index + 1}`);
  const wide = Array.from({ length: 20 }, (_, index) => `resourceVersion=7&labelSelector=a${index}`);
  const [watch] = watchAgain(path, [...on, ...wide]);
  assert.equal(watch?.entries("watch.replay_loop"), []);
});

test.run();
