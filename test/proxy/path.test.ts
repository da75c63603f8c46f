import { suite } from "uvu";
import * as assert from "uvu/assert";
import { bearer, PlayedPath } from "../support/path.ts";

const test = suite("proxy/path");

test("backends are dialled when they come, and let go when they leave", () => {
  const path = new PlayedPath(["a"]);
  assert.is(path.backends.views[0]?.state, "ready");
  path.reconcile([]);
  path.settle();
  assert.equal(path.backends.views, []);
  assert.ok(path.backend("a").sessions.every(({ session }) => session.isOver));
});

test("a thousand clients leave nothing behind", () => {
  const path = new PlayedPath(["a", "b"]);
  for (let index = 0; index < 1000; index += 1) {
    const client = path.client();
    client.ask("GET", "/api", [bearer("t")]);
    path.settle();
    client.cable.cut("gone");
  }
  path.settle();
  assert.is(path.exchanges.size, 0);
  // Beyond the budget of resets their streams are let go as it grows again: 33 a second for each lane.
  path.clock.advance(60_000);
  assert.is(path.upstreams.loadOf("a") + path.upstreams.loadOf("b"), 0);
});

test.run();
