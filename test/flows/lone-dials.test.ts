/** Dials without a request that waits, and dials that are in vain. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { bearer, PlayedPath } from "../support/path.ts";

const test = suite("flows/lone-dials");

test("without warm connections, a backend that was restarted gracefully becomes ready without a client's request", () => {
  for (const downMs of [0, 3000]) {
    const path = new PlayedPath(["a", "b"], { isProbed: true, warm: 0 });
    path.clock.advance(2000);
    const clients = Array.from({ length: 6 }, () => path.client());
    for (const client of clients) client.ask("GET", "/api/v1/namespaces/d/pods/p", [bearer("x")]);
    for (let turn = 0; turn < 20; turn += 1) {
      path.clock.advance(50);
      path.settle();
      const asked = [...path.played.values()].flatMap((backend) => backend.asked.splice(0));
      for (const one of asked) one.answer(200, "{}");
    }
    path.settle();
    const b = path.backend("b");
    assert.ok(b.sessions.length > 0);
    const pass = (ms: number): void => {
      for (let at = 0; at < ms; at += 50) {
        path.clock.advance(50);
        path.settle();
      }
    };
    for (const { session } of b.sessions) session.goAway();
    b.isDown = downMs > 0;
    pass(downMs);
    b.isDown = false;
    pass(10_000);
    assert.is(path.backends.stateOf("b"), "ready", `${downMs} ms`);
  }
});

test("a sole backend that announces MAX_CONCURRENT_STREAMS 0 is dialled at most once a second", () => {
  const path = new PlayedPath(["a"], { isProbed: true });
  path.clock.advance(2000);
  const a = path.backend("a");
  a.maxStreams = 0;
  for (const { cable } of a.sessions) cable.cut("read ECONNRESET");
  path.clock.advance(1000);
  const before = a.dialCount;
  for (let request = 0; request < 60; request += 1) {
    path.client().ask("GET", "/api/v1/namespaces/d/pods/p", [bearer("x")]);
    path.clock.advance(1000);
  }
  assert.ok(a.dialCount - before <= 60, `${a.dialCount - before} dials in 60 s`);
  a.maxStreams = 100;
  const get = path.client().ask("GET", "/api/v1/namespaces/d/pods/p", [bearer("x")]);
  for (let ms = 0; ms < 2000 && a.asked.length === 0; ms += 50) {
    path.clock.advance(50);
    path.settle();
  }
  for (const one of a.asked) if (one.resetCode === undefined) one.answer(200, "{}");
  path.settle();
  assert.is(get.status, "200");
});

test.run();
