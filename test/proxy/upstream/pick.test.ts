import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import type { BackendState } from "../../../src/health/backend.ts";
import { pick, pickOther } from "../../../src/proxy/upstream/pick.ts";

const test = suite("proxy/upstream/pick");

function chosen(
  states: Record<string, BackendState>,
  more: { bound?: string; tried?: string[]; loads?: Record<string, number> } = {},
) {
  const views = Object.entries(states).map(([name, state]) => ({ name, state, since: 0 }));
  const loads = (name: string): number => more.loads?.[name] ?? 0;
  return pick({ views, loads, bound: more.bound, tried: more.tried ?? [] });
}

test("the backend with the fewest streams is chosen", () => {
  assert.is(chosen({ a: "ready", b: "ready" }, { loads: { a: 2, b: 1 } }), "b");
});

test("a client stays where it is bound, however loaded that is (k/k 59848)", () => {
  assert.is(chosen({ a: "ready", b: "ready" }, { loads: { a: 9 }, bound: "a" }), "a");
});

test("one that refused twice may be dying, upstream connection after upstream connection: one in doubt is the better choice then", () => {
  assert.is(chosen({ a: "ready", b: "suspect" }, { tried: ["a", "a"] }), "b");
  assert.is(chosen({ a: "ready", b: "suspect" }, { tried: ["a", "a", "b"] }), "a");
  assert.is(chosen({ a: "ready", b: "dead" }, { tried: ["a", "a"] }), "a");
});

test("it leaves a backend that is suspect, draining, dead or was tried already", () => {
  for (const state of ["suspect", "draining", "dead"] as const) {
    assert.is(chosen({ a: state, b: "ready" }, { bound: "a" }), "b", state);
  }
  assert.is(chosen({ a: "ready", b: "ready" }, { bound: "a", tried: ["a"] }), "b");
});

test("where no other backend is left, a ready backend that refused one stream is asked again", () => {
  assert.is(chosen({ a: "ready", b: "dead" }, { bound: "a", tried: ["a"] }), "a");
  assert.is(chosen({ a: "ready", b: "suspect" }, { tried: ["a"] }), "a");
  assert.is(chosen({ a: "ready", b: "draining" }, { tried: ["a"] }), "b");
  assert.is(chosen({ a: "dead", b: "suspect" }, { tried: ["a"] }), "b");
  assert.instance(chosen({ a: "suspect" }, { tried: ["a"] }), Failure);
});

test("suspect is better than nothing, dead never is", () => {
  assert.is(chosen({ a: "suspect", b: "dead" }), "a");
  const failure = chosen({ a: "dead", b: "dead" });
  assert.instance(failure, Failure);
  assert.equal(failure instanceof Failure && [failure.code, failure.origin], ["no-backend", "proxy"]);
  assert.match(failure instanceof Failure ? failure.message : "", "a dead, b dead");
});

test("another backend to ask is known to answer, and has the fewest streams of those", () => {
  const views = (["suspect", "ready", "ready", "draining", "unknown"] as const).map((state, index) => ({
    name: "abcde".charAt(index),
    state,
    since: 0,
  }));
  const loads = (name: string): number => (name === "b" ? 2 : 1);
  assert.is(pickOther(views, loads, ["a"]), "c");
  assert.is(pickOther(views, loads, ["a", "b", "c"]), "d");
  assert.is(pickOther(views, loads, ["b", "c", "d"]), undefined);
});

test.run();
