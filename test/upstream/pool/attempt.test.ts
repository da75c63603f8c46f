import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { Attempt, growWindow } from "../../../src/upstream/pool/attempt.ts";
import { upstreamLimits } from "../../../src/upstream/pool/limits.ts";
import { attemptOwner } from "../../support/attempt-owner.ts";
import { PlayedPath } from "../../support/path.ts";

const test = suite("upstream/pool/attempt");

/** Starts an attempt on backend a. `heard` lists the calls that its exchange gets. */
function attemptOn(path: PlayedPath): { attempt: Attempt; heard: string[] } {
  const heard: string[] = [];
  const owner = attemptOwner({
    attemptOpened: () => heard.push("opened"),
    attemptRefused: (_leg, { code }) => heard.push(`refused: ${code}`),
    attemptHeaders: (_leg, fields) => heard.push(`headers ${fields[0]?.value}`),
    attemptData: (_leg, bytes, start, end) => heard.push(bytes.toString("latin1", start, end)),
    attemptGone: (_leg, code) => heard.push(`gone ${code}`),
    attemptSuspected: () => heard.push("suspect"),
    attemptFaulted: (error) => heard.push(`faulted: ${String(error)}`),
  });
  const attempt = new Attempt("a", owner);
  attempt.dial(path.pools);
  path.settle();
  return { attempt, heard };
}

test("an attempt opens a stream on its upstream connection and tells what that says, until it is cancelled", () => {
  const path = new PlayedPath(["a"]);
  const { attempt, heard } = attemptOn(path);
  const { last } = path.backend("a");
  last.side?.sendHeaders([new Field(":status", "200")], false);
  last.say("one");
  path.settle();
  attempt.cancel(true);
  last.say("two");
  path.settle();
  assert.equal(heard, ["opened", "headers 200", "one"]);
  assert.equal([attempt.up, last.resetCode], [undefined, 8]);
});

test("an attempt that is cancelled while it waits for an upstream connection is never sent", () => {
  const path = new PlayedPath(["a"], { warm: 0 });
  path.backend("a").isMute = true;
  const { attempt, heard } = attemptOn(path);
  attempt.cancel(false);
  path.clock.advance(5_000);
  assert.equal(heard, []);
});

test("an attempt that gets no upstream connection says so", () => {
  const { heard } = attemptOn(new PlayedPath(["a"], { warm: 0, down: ["a"] }));
  assert.equal(heard, ["refused: backend-refused"]);
});

test("an attempt is told at every tick that it waits for long, or that its upstream connection is silent, and knows when it answers again (D6)", () => {
  const path = new PlayedPath(["a"], { warm: 2 });
  const { attempt, heard } = attemptOn(path);
  const connection = path.backend("a").sessions.find(({ session }) => session.openCount > 0);
  const letGo = connection?.cable.hold();
  path.clock.advance(600);
  assert.equal([heard, attempt.isSlow, attempt.isSuspect], [["opened", "suspect"], true, false]);
  path.clock.advance(500);
  assert.is(path.backends.views[0]?.state, "ready");
  assert.equal(heard, ["opened", "suspect", "suspect", "suspect"]);
  assert.ok(attempt.isSuspect);
  letGo?.();
  path.clock.advance(100);
  assert.equal([heard.length, attempt.isSuspect], [4, false]);
});

test("an attempt whose upstream connection answers is told that its backend is suspect for another reason", () => {
  const path = new PlayedPath(["a"]);
  const { attempt, heard } = attemptOn(path);
  path.backends.learn("a", { kind: "connections-silent", ms: 900, limitMs: 500 });
  assert.equal([heard, attempt.isSuspect], [["opened", "suspect"], true]);
  path.backends.learn("a", { kind: "connections-answer" });
  assert.is(attempt.isSuspect, false);
});

test("an attempt that waits is told when that takes too long, or is in vain", () => {
  const path = new PlayedPath(["a"], { warm: 0 });
  path.backend("a").isMute = true;
  const { attempt, heard } = attemptOn(path);
  path.clock.advance(upstreamLimits.connectionDoubtMs);
  assert.equal([heard, attempt.up], [[], undefined]);
  path.clock.advance(250);
  assert.equal(heard, ["suspect"]);
  path.backends.learn("a", { kind: "connections-silent", ms: 900, limitMs: 500 });
  assert.is(heard.length, 2);
});

test("a proxy fault in a callback of an attempt ends its exchange: the caller is not touched", () => {
  const faults: unknown[] = [];
  const fail = (): never => {
    throw new Error("a bug");
  };
  const owner = attemptOwner({
    attemptRefused: fail,
    attemptSuspected: fail,
    attemptOpened: fail,
    attemptFaulted: (error) => faults.push(error),
  });
  const path = new PlayedPath(["a"]);
  const attempt = new Attempt("a", owner);
  attempt.refused(new Failure("overload", "proxy", "x"));
  attempt.suspected();
  path.settle();
  attempt.dial(path.pools);
  assert.is(faults.length, 3);
});

const far = { rttMs: 100 };

/** Returns the upstream stream of a GET in progress, with the session's initial window. */
function stream() {
  const path = new PlayedPath(["a"]);
  return path.client().ask("GET", "/api").stream;
}

test("a window that was used up twice is doubled, up to the most that one may have", () => {
  const up = stream();
  const { size } = up.receiveWindow;
  assert.is(growWindow(up, far, 2 * size - 1, false), 2 * size - 1);
  assert.is(growWindow(up, far, 2 * size, false), 0);
  assert.is(up.receiveWindow.size, 2 * size);
  for (let round = 0; round < 10; round += 1) growWindow(up, far, 1e9, false);
  assert.is(up.receiveWindow.size, upstreamLimits.streamWindowMostBytes);
});

test("a backend next door is allowed no more than comes in a round trip", () => {
  const up = stream();
  const { size } = up.receiveWindow;
  for (const rttMs of [0, 0.3, size / upstreamLimits.streamBytesPerMs]) {
    assert.is(growWindow(up, { rttMs }, 1e9, false), 0, "it is looked at again after two more windows");
    assert.is(up.receiveWindow.size, size, `${rttMs} ms away`);
  }
  const rttMs = (1.5 * size) / upstreamLimits.streamBytesPerMs;
  for (let round = 0; round < 3; round += 1) growWindow(up, { rttMs }, 1e9, false);
  assert.is(up.receiveWindow.size, 1.5 * size);
});

test("when memory is short it shrinks, and does not grow", () => {
  const up = stream();
  const { size } = up.receiveWindow;
  assert.is(growWindow(up, far, 1e9, true), 1e9);
  // A granted window cannot be taken back. But what the backend has used of it is granted again only up to the smaller
  // size.
  up.receiveWindow.use(size);
  up.receiveWindow.grant(size);
  assert.is(up.receiveWindow.size, upstreamLimits.streamWindowTightBytes);
});

test.run();
