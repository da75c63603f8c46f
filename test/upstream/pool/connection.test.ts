import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Buffered } from "../../../src/h2/core/buffered.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { FlushScheduler } from "../../../src/h2/core/flush-scheduler.ts";
import { Connection } from "../../../src/upstream/pool/connection.ts";
import { upstreamLimits } from "../../../src/upstream/pool/limits.ts";
import { poolKey } from "../../../src/upstream/pool/pool-key.ts";
import { manualClock } from "../../support/clock.ts";
import { bearer, PlayedPath } from "../../support/path.ts";

const test = suite("upstream/pool/connection");

/** Uses a new client each time, so that these resets use up the upstream connection's budget and not a client's. */
function resetOne(path: PlayedPath): number | undefined {
  const ear = path.client().ask("GET", "/api", [bearer("t")]);
  path.settle();
  ear.stream.reset(8);
  path.settle();
  return path.backend("a").last.resetCode;
}

test("beyond its budget of resets an upstream connection takes no new streams: all are reset at once, and what else is on it lives on (A1, D17)", () => {
  const path = new PlayedPath(["a"]);
  const backend = path.backend("a");
  const bystander = path.client().ask("GET", "/slow", [bearer("t")]);
  path.settle();
  const slow = backend.last;
  const backoff = backend.sessions.length;
  for (let index = 0; index < upstreamLimits.connectionResetBurst; index += 1) assert.is(resetOne(path), 8);
  assert.is(backend.sessions.length, backoff);
  for (let index = 0; index < 50; index += 1) assert.is(resetOne(path), 8);
  assert.is(backend.sessions.length, backoff + 1, "the next requests have a connection of their own");
  slow.answer(200, "slow");
  path.settle();
  assert.equal([bystander.status, bystander.body], ["200", "slow"]);
  path.clock.advance(3000);
  assert.is(path.backends.views[0]?.state, "ready");
  assert.is(path.exchanges.size, 0);
});

test("a backend that allows few streams bears few resets as well", () => {
  const path = new PlayedPath(["a"], { warm: 0 });
  const backend = path.backend("a");
  backend.maxStreams = 5;
  for (let index = 0; index < 11; index += 1) resetOne(path);
  assert.is(backend.sessions.length, 1);
  resetOne(path);
  assert.is(backend.sessions.length, 2);
});

test("a backend that answers the proxy's GOAWAY with its own, as Go's server does, is not going", () => {
  const path = new PlayedPath(["a"]);
  const backend = path.backend("a");
  const hanging = ["/api", "/api/v1/pods?watch=1"].map((target) =>
    path.client().ask("GET", target, [bearer("t")]),
  );
  path.settle();
  for (const { connections } of path.pools.poolOf("a")?.shards ?? [])
    for (const connection of connections) connection.yield();
  path.settle();
  for (const { session } of backend.sessions) session.goAway();
  path.settle();
  assert.is(path.backends.views[0]?.state, "ready");
  for (const asked of backend.asked) asked.answer(200, "late");
  path.settle();
  assert.equal(
    hanging.map(({ status }) => status),
    ["200", "200"],
  );
});

test("a PING's round trip is measured", () => {
  const path = new PlayedPath(["a"]);
  path.clock.advance(600);
  assert.is(path.pools.poolOf("a")?.rtt.quantile(0.99), 0.1);
});

test("a dial that gets no SETTINGS in time is a refusal", () => {
  const path = new PlayedPath([]);
  const mute = path.client();
  mute.ask("GET", "/x");
  path.settle();
  const late = new PlayedPath(["a"]);
  late.backend("a").isMute = true;
  for (const { cable } of late.backend("a").sessions) cable.blackHole();
  const ear = late.client().ask("GET", "/x");
  late.clock.advance(limits.dialMs + 250 + 10_000);
  assert.is(ear.status, "503");
});

const inTurn = { isTurn: true, isLate: false, dialMs: limits.dialMs };
const ignored = { headers() {}, data() {}, reset() {}, sent() {} };

/** Returns an upstream connection whose backend has sent only an empty SETTINGS frame. */
function openConnection() {
  const clock = manualClock();
  const wire = { waitingBytes: 500_000, write: () => true, end() {}, destroy() {} };
  const owner = { opened() {}, changed() {}, resumed() {}, ponged() {}, faulted() {}, closed() {} };
  const parts = { clock, turn: new FlushScheduler(clock), buffered: new Buffered(Number.POSITIVE_INFINITY) };
  const names = { key: poolKey("proven", "plain"), number: 7, mostStreams: () => 80, pathPrefix: () => "" };
  const connection = new Connection({ ...parts, ...names, owner, connect: () => wire, rttMs: () => 0 });
  connection.receive(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
  return { clock, connection, wire };
}

test("a PING behind a backlog that gets less is no silence; behind one that stands still it is", () => {
  const { clock, connection, wire } = openConnection();
  const tick = (): void => connection.tick(inTurn);
  for (let round = 0; round < 20; round += 1) {
    tick();
    assert.is(connection.silentSince, clock.now(), `after ${clock.now()} ms`);
    wire.waitingBytes -= 10_000;
    clock.advance(250);
  }
  tick();
  const stoodAt = clock.now();
  clock.advance(1000);
  tick();
  assert.is(connection.silentSince, stoodAt);
});

test("bytes that the kernel takes at once are no sign of life from the backend", () => {
  const { clock, connection, wire } = openConnection();
  wire.waitingBytes = 0;
  const stream = connection.open([new Field(":method", "PUT")], false, ignored);
  clock.advance(0);
  const startedAt = clock.now();
  for (const waitingBytes of [13, 16_009, 10_000, 26]) {
    // Node has not reported yet that the kernel has taken the latest bytes.
    wire.waitingBytes = waitingBytes;
    connection.tick(inTurn);
    assert.is(connection.silentSince, startedAt, `after ${clock.now() - startedAt} ms`);
    clock.advance(upstreamLimits.fullBufferMs - 1);
    wire.waitingBytes = 0;
    clock.advance(1);
    stream.sendData(Buffer.alloc(16_000), 0, 16_000, false);
    clock.advance(200);
  }
});

test("an upload that the kernel takes slowly is no silence, even if its bytes follow the PING", () => {
  const { clock, connection, wire } = openConnection();
  wire.waitingBytes = 0;
  connection.tick(inTurn);
  const stream = connection.open([new Field(":method", "PUT")], false, ignored);
  stream.sendData(Buffer.alloc(60_000), 0, 60_000, false);
  clock.advance(250);
  for (const waitingBytes of [50_000, 40_000, 30_000, 20_000, 10_000]) {
    wire.waitingBytes = waitingBytes;
    connection.tick(inTurn);
    if (waitingBytes < 50_000) assert.is(connection.silentSince, clock.now(), `${waitingBytes} bytes wait`);
    clock.advance(250);
  }
});

test("a connection on which a stream was opened is pinged out of turn, once", () => {
  const { clock, connection } = openConnection();
  const beat = { ...inTurn, isTurn: false };
  connection.tick(beat);
  assert.is(connection.silentSince, undefined);
  connection.open([new Field(":method", "GET")], true, ignored);
  connection.tick(beat);
  const askedAt = clock.now();
  assert.is(connection.silentSince, askedAt);
  // The acknowledgement of the first PING.
  connection.receive(Buffer.from([0, 0, 8, 6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]));
  clock.advance(250);
  connection.tick(beat);
  assert.is(connection.silentSince, undefined);
});

test.run();
