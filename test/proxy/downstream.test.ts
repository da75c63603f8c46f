import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../src/limits.ts";
import { PlayedPath } from "../support/path.ts";

const test = suite("proxy/downstream");

test("a session without a stream is sent away after five minutes, one with a watch never (A25)", () => {
  const path = new PlayedPath(["a"]);
  const [idle, watching] = [path.client(), path.client()];
  watching.ask("GET", "/api/v1/pods?watch=1");
  for (let second = 0; second < limits.idleSessionMs / 1000 + 10; second += 1) {
    path.clock.advance(1000);
    idle.downstream.check();
    watching.downstream.check();
  }
  assert.equal([idle.isGone, watching.isGone], [true, false]);
});

test("drain is two steps: what the client opened before it heard of it is still served", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  path.settle();
  client.downstream.drain();
  const crossing = client.ask("GET", "/crossing");
  path.settle();
  path.backend("a").last.answer(200, "served");
  path.settle();
  assert.is(crossing.body, "served");
  assert.ok(client.isGone);
});

test("what follows the PONG at once is served as well, what comes later is not", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  client.ask("GET", "/api/v1/pods?watch=1");
  path.settle();
  client.downstream.drain();
  path.settle();
  path.clock.advance(limits.goAwayGraceMs - 1);
  // Node's client does so: it had been asked before it was connected.
  client.ask("GET", "/queued");
  path.settle();
  assert.is(path.backend("a").last.request.path, "/queued");
  path.clock.advance(1);
  client.ask("GET", "/late");
  path.settle();
  assert.is(path.backend("a").last.request.path, "/queued");
});

test("a client that breaks the protocol is named, and its exchanges end", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  client.ask("GET", "/api/v1/pods?watch=1");
  path.settle();
  client.downstream.receive(Buffer.from([0, 0, 7, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7]));
  path.settle();
  assert.is(path.exchanges.size, 0);
  assert.ok(path.entries.some((entry) => entry.kind === "session.refused" && entry.client === "10.0.0.9"));
  assert.ok(client.isGone);
});

test("cut ends a session whatever is open", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  client.ask("GET", "/api/v1/pods?watch=1");
  path.settle();
  client.downstream.cut();
  path.settle();
  assert.equal([client.isGone, path.exchanges.size], [true, 0]);
});

test.run();
