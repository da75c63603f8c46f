import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/field.ts";
import { limits } from "../../src/limits.ts";
import { bearer, PlayedPath } from "../support/path.ts";

const test = suite("proxy/lane");

test("beyond its budget of resets a lane reads answers to their end instead (A1)", () => {
  const path = new PlayedPath(["a"]);
  const backend = path.backend("a");
  backend.maxStreams = 1000;
  let resets = 0;
  for (let index = 0; index < limits.resetBurst + 50; index += 1) {
    // A new client each time: what is spent is the lane's budget, not the client's.
    const ear = path.client().ask("GET", "/api", [bearer("t")]);
    path.settle();
    ear.stream.reset(8);
    path.settle();
    if (backend.last.resetCode !== undefined) resets += 1;
  }
  assert.is(resets, limits.resetBurst);
  const drained = backend.last;
  drained.answer(200, "nobody reads this");
  path.settle();
  assert.is(drained.resetCode, undefined);
  assert.is(path.exchanges.size, 0);
});

test("a drained answer that does not end is reset after a megabyte", () => {
  const path = new PlayedPath(["a"]);
  const cancelOne = (): void => {
    const ear = path.client().ask("GET", "/api", [bearer("t")]);
    path.settle();
    ear.stream.reset(8);
    path.settle();
  };
  for (let index = 0; index <= limits.resetBurst; index += 1) cancelOne();
  const { last } = path.backend("a");
  assert.is(last.resetCode, undefined);
  last.side?.sendHeaders([new Field(":status", "200")], false);
  for (let sent = 0; sent <= limits.drainedBytes; sent += 100_000) {
    last.say(Buffer.alloc(100_000));
    path.settle();
  }
  assert.is(last.resetCode, 8);
});

test("a PING's round trip is measured", () => {
  const path = new PlayedPath(["a"]);
  path.clock.advance(600);
  const [lane] = path.upstreams.lanesOf("a")?.rows[0]?.lanes ?? [];
  assert.is(lane?.rttMs, 0);
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
  late.clock.advance(limits.dialMs + 2500);
  assert.is(ear.status, "503");
});

test.run();
