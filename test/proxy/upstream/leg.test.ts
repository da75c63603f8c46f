import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { limits } from "../../../src/base/limits.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { Leg } from "../../../src/proxy/upstream/leg.ts";
import { legOwner } from "../../support/leg-owner.ts";
import { PlayedPath } from "../../support/path.ts";

const test = suite("proxy/leg");

/** A leg to backend a, and the words that its exchange heard. */
function legOn(path: PlayedPath): { leg: Leg; heard: string[] } {
  const heard: string[] = [];
  const owner = legOwner({
    legOpened: () => heard.push("opened"),
    legRefused: (_leg, { code }) => heard.push(`refused: ${code}`),
    legHeaders: (_leg, fields) => heard.push(`headers ${fields[0]?.value}`),
    legData: (_leg, bytes, start, end) => heard.push(bytes.toString("latin1", start, end)),
    legGone: (_leg, code) => heard.push(`gone ${code}`),
    legSuspected: () => heard.push("suspect"),
    legFaulted: (error) => heard.push(`faulted: ${String(error)}`),
  });
  const leg = new Leg("a", owner);
  leg.dial(path.pools);
  path.settle();
  return { leg, heard };
}

test("a leg opens a stream on its upstream connection and tells what that says, until it is cancelled", () => {
  const path = new PlayedPath(["a"]);
  const { leg, heard } = legOn(path);
  const { last } = path.backend("a");
  last.side?.sendHeaders([new Field(":status", "200")], false);
  last.say("one");
  path.settle();
  leg.cancel(true);
  last.say("two");
  path.settle();
  assert.equal(heard, ["opened", "headers 200", "one"]);
  assert.equal([leg.up, last.resetCode], [undefined, 8]);
});

test("a leg that is cancelled while it waits for an upstream connection is never sent", () => {
  const path = new PlayedPath(["a"], { warm: 0 });
  path.backend("a").isMute = true;
  const { leg, heard } = legOn(path);
  leg.cancel(false);
  path.clock.advance(5_000);
  assert.equal(heard, []);
});

test("a leg that gets no upstream connection says so", () => {
  const { heard } = legOn(new PlayedPath(["a"], { warm: 0, down: ["a"] }));
  assert.equal(heard, ["refused: backend-refused"]);
});

test("a leg is told at every tick that it waits for long, or that its upstream connection is silent, and knows when it answers again (D6)", () => {
  const path = new PlayedPath(["a"], { warm: 2 });
  const { leg, heard } = legOn(path);
  const connection = path.backend("a").sessions.find(({ session }) => session.openCount > 0);
  const letGo = connection?.cable.hold();
  path.clock.advance(600);
  assert.equal([heard, leg.isSlow, leg.isSuspect], [["opened", "suspect"], true, false]);
  path.clock.advance(500);
  assert.is(path.backends.views[0]?.state, "ready");
  assert.equal(heard, ["opened", "suspect", "suspect", "suspect"]);
  assert.ok(leg.isSuspect);
  letGo?.();
  path.clock.advance(100);
  assert.equal([heard.length, leg.isSuspect], [4, false]);
});

test("a leg whose upstream connection answers hears that its backend is suspected for another reason", () => {
  const path = new PlayedPath(["a"]);
  const { leg, heard } = legOn(path);
  path.backends.learn("a", { kind: "connections-silent", ms: 900, limitMs: 500 });
  assert.equal([heard, leg.isSuspect], [["opened", "suspect"], true]);
  path.backends.learn("a", { kind: "connections-answer" });
  assert.is(leg.isSuspect, false);
});

test("a leg that waits hears when that takes too long, or is in vain", () => {
  const path = new PlayedPath(["a"], { warm: 0 });
  path.backend("a").isMute = true;
  const { leg, heard } = legOn(path);
  path.clock.advance(limits.connectionDoubtMs);
  assert.equal([heard, leg.up], [[], undefined]);
  path.clock.advance(250);
  assert.equal(heard, ["suspect"]);
  path.backends.learn("a", { kind: "connections-silent", ms: 900, limitMs: 500 });
  assert.is(heard.length, 2);
});

test("a fault of ours while a leg is told is its exchange's: whoever told it is not touched", () => {
  const faults: unknown[] = [];
  const fail = (): never => {
    throw new Error("a bug");
  };
  const owner = legOwner({
    legRefused: fail,
    legSuspected: fail,
    legOpened: fail,
    legFaulted: (error) => faults.push(error),
  });
  const path = new PlayedPath(["a"]);
  const leg = new Leg("a", owner);
  leg.refused(new Failure("overload", "proxy", "x"));
  leg.suspected();
  path.settle();
  leg.dial(path.pools);
  assert.is(faults.length, 3);
});

test.run();
