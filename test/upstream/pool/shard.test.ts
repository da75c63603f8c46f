import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { limits } from "../../../src/base/limits.ts";
import { sliceLimits } from "../../../src/base/slices.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { identityOf } from "../../../src/upstream/identity/asserted-identity.ts";
import { upstreamLimits } from "../../../src/upstream/pool/limits.ts";
import { poolKey } from "../../../src/upstream/pool/pool-key.ts";
import { refuse } from "../../../src/upstream/pool/shard.ts";
import { shownBy, usualNames } from "../../support/certificate.ts";
import { manualClock } from "../../support/clock.ts";
import { bearer, PlayedPath } from "../../support/path.ts";

const test = suite("upstream/pool/shard");

const shown = await shownBy({ name: "alice", groups: ["devs"] });
const lasting = { ...shown, notAfter: Number.MAX_SAFE_INTEGER };
const asserted = identityOf(lasting, { clientCerts: "FrontProxy", names: usualNames });
const impersonated = identityOf(lasting, { clientCerts: "Impersonate" });
const json = new Field("content-type", "application/json");
const target = "/api/v1/pods?watch=1&resourceVersion=5";

/**
 * Returns a line for each shard: how many of its upstream connections take new requests, and the number of open streams
 * on all of them.
 */
function shards(path: PlayedPath): string[] {
  return (path.pools.poolOf("a")?.shards ?? [])
    .filter(({ connections }) => connections.length > 0)
    .map(({ key, connections }) => {
      const taking = connections.filter(({ isRetiring }) => !isRetiring).length;
      return `${key.name}: ${taking} of ${connections.length}, ${connections.reduce((sum, connection) => sum + connection.openCount, 0)}`;
    });
}

test("requests with front-proxy headers, with impersonation, anonymous ones and all others never meet on an upstream connection (D9)", () => {
  const path = new PlayedPath(["a"], { warm: 0 });
  for (const identity of [asserted, impersonated]) path.client({ identity }).ask("GET", "/api");
  path.client().ask("GET", "/api", [bearer("t")]);
  path.client().ask("GET", "/api");
  path.settle();
  assert.equal(shards(path), [
    "front-proxy plain: 1 of 1, 1",
    "impersonate plain: 1 of 1, 1",
    "unproven plain: 1 of 1, 1",
    "unproven plain rejected: 1 of 1, 1",
  ]);
});

test("nor where every client has upstream connections of its own", () => {
  const path = new PlayedPath(["a"], { warm: 0, isPerClient: true });
  const client = path.client({ identity: asserted });
  client.ask("GET", "/api");
  path.client({ identity: asserted }).ask("GET", "/api");
  path.settle();
  assert.equal(shards(path), ["front-proxy plain 1: 1 of 1, 1", "front-proxy plain 2: 1 of 1, 1"]);
});

test("A44: a renewed certificate has an upstream connection before the old one's takes no new request; its watch lives on there", () => {
  const path = new PlayedPath(["a"], { warm: 0 });
  const client = path.client({ identity: asserted });
  const watch = client.ask("GET", target);
  path.settle();
  path.backend("a").last.side?.sendHeaders([new Field(":status", "200"), json], false);
  path.settle();
  path.pools.renew("front-proxy", () => true);
  assert.equal(shards(path), ["front-proxy long: 2 of 2, 1"]);
  const between = client.ask("GET", target);
  path.settle();
  assert.equal(shards(path), ["front-proxy long: 1 of 2, 2"]);
  const later = client.ask("GET", target);
  path.settle();
  assert.equal([watch.isEnded, between.resetCode, later.resetCode], [false, undefined, undefined]);
  assert.is(path.backend("a").asked.length, 3);
});

test("while the new upstream connection cannot be opened the old one serves", () => {
  const path = new PlayedPath(["a"], { warm: 0 });
  const client = path.client({ identity: asserted });
  client.ask("GET", target);
  path.settle();
  path.backend("a").isDown = true;
  path.pools.renew("front-proxy", () => true);
  path.clock.advance(1000);
  client.ask("GET", target);
  path.settle();
  assert.is(path.backend("a").asked.length, 2);
  path.backend("a").isDown = false;
  path.clock.advance(upstreamLimits.redialMostMs);
  assert.equal(shards(path), ["front-proxy long: 1 of 2, 2"]);
});

test("upstream connections of other classes do not care", () => {
  const path = new PlayedPath(["a"]);
  path.pools.renew("front-proxy", () => true);
  path.settle();
  assert.equal(shards(path), ["proven plain: 1 of 1, 0", "proven long: 1 of 1, 0"]);
});

test("a request that waits in a shard without an upstream connection is refused once", () => {
  const key = poolKey("proven", "plain");
  const told: string[] = [];
  const waiter = {
    key,
    rekey: () => key,
    ready() {},
    suspected() {},
    refused: ({ message }: Failure) => told.push(message),
  };
  const shard = { key, connections: [], waiting: new Map([[waiter, 0]]) };
  refuse(shard, new Failure("backend-refused", "backend", "gone"), manualClock());
  refuse(shard, new Failure("backend-refused", "backend", "gone again"), manualClock());
  assert.equal(told, ["gone"]);
});

test("of 10,000 that wait a slice is refused in each loop turn; a request that has left or is served meanwhile is not", () => {
  const clock = manualClock();
  const key = poolKey("proven", "plain");
  let refused = 0;
  const waiters = Array.from({ length: limits.waitingExchanges }, () => ({
    key,
    rekey: () => key,
    ready() {},
    suspected() {},
    refused: () => void (refused += 1),
  }));
  const shard = { key, connections: [], waiting: new Map(waiters.map((one) => [one, 0])) };
  refuse(shard, new Failure("backend-refused", "backend", "gone"), clock);
  assert.is(refused, sliceLimits.sliceEntries);
  for (const waiter of waiters.slice(-10)) shard.waiting.delete(waiter);
  clock.turn();
  assert.equal([refused, shard.waiting.size], [limits.waitingExchanges - 10, 0]);
});

test("upstream connections that a burst has opened close within 5 s of it, down to the warm ones and one more for each row", () => {
  const path = new PlayedPath(["a"]);
  path.client().ask("GET", "/api", [bearer("t")]);
  path.settle();
  path.backend("a").last.answer(200);
  path.settle();
  for (let crowd = 0; crowd < 5; crowd += 1) {
    const client = path.client();
    for (let index = 0; index < 90; index += 1) client.ask("GET", "/api", [bearer("t")]);
  }
  path.clock.advance(1000);
  for (const asked of path.backend("a").asked.slice(1)) asked.answer(200);
  path.settle();
  assert.ok(shards(path).includes("proven plain: 6 of 6, 0"), shards(path).join());
  path.clock.advance(5000);
  assert.equal(shards(path), [
    "proven plain: 1 of 1, 0",
    "proven long: 1 of 1, 0",
    "unproven plain: 1 of 1, 0",
  ]);
});

test("a stall of the proxy refuses no request that waits for an upstream connection (F11)", () => {
  const path = new PlayedPath(["a"], { warm: 0 });
  path.backend("a").maxStreams = 0;
  const heard: string[] = [];
  const key = poolKey("proven", "plain");
  path.pools.poolOf("a")?.wait({
    key,
    rekey: () => key,
    ready: () => heard.push("ready"),
    suspected() {},
    refused: ({ code }) => heard.push(code),
  });
  path.clock.advance(1000);
  path.clock.stall(2 * upstreamLimits.connectionWaitMs);
  path.clock.advance(500);
  assert.equal(heard, []);
  path.clock.advance(upstreamLimits.connectionWaitMs);
  assert.equal(heard, ["overload"]);
});

test.run();
