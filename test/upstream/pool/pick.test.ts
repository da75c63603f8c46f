import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import type { BackendState } from "../../../src/health/backend.ts";
import { pick, pickOther } from "../../../src/upstream/pool/pick.ts";
import { loadsOf } from "../../support/loads.ts";
import { seeded } from "../../support/random.ts";

const test = suite("upstream/pool/pick");

function chosen(
  states: Record<string, BackendState>,
  more: { bound?: string; tried?: string[]; loads?: Record<string, number> } = {},
) {
  const views = Object.entries(states).map(([name, state]) => ({ name, state, since: 0 }));
  const loads = loadsOf((name) => more.loads?.[name] ?? 0);
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
  const loads = loadsOf((name) => (name === "b" ? 2 : 1));
  assert.is(pickOther(views, loads, ["a"]), "c");
  assert.is(pickOther(views, loads, ["a", "b", "c"]), "d");
  assert.is(pickOther(views, loads, ["b", "c", "d"]), undefined);
});

test("of three backends the less loaded of two random ones is chosen, so the most loaded one never is", () => {
  const random = seeded(1);
  const views = ["a", "b", "c"].map((name) => ({ name, state: "ready", since: 0 }) as const);
  const loads = loadsOf((name) => ({ a: 1, b: 2, c: 3 })[name] ?? 0, {
    random: () => random.below(1000) / 1000,
  });
  const counts = new Map<unknown, number>();
  for (let count = 0; count < 3000; count += 1) {
    const name = pick({ views, loads, bound: undefined, tried: [] });
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  assert.equal(counts.has("c"), false);
  assert.ok(Math.abs((counts.get("a") ?? 0) - 2000) < 150, String(counts.get("a")));
});

test("a backend that has asked for a pause gets a new client only if all have asked, and keeps its own", () => {
  const views = ["a", "b"].map((name) => ({ name, state: "ready", since: 0 }) as const);
  const paused = (...names: string[]) =>
    loadsOf((name) => (name === "a" ? 1 : 9), { isPaused: (name) => names.includes(name) });
  const parts = { views, bound: undefined, tried: [] };
  assert.is(pick({ ...parts, loads: paused("a") }), "b");
  assert.is(pick({ ...parts, loads: paused("a", "b") }), "a");
  assert.is(pick({ ...parts, loads: paused("a"), bound: "a" }), "a");
  assert.is(pickOther(views, paused("a"), []), "b");
});

test("a backend of the own zone is chosen, unless its weight exceeds that of one elsewhere", () => {
  const views = ["a", "b", "c"].map((name) => ({ name, state: "ready", since: 0 }) as const);
  const chosenAt = (a: number): unknown => {
    const loads = loadsOf((name) => ({ a, b: 5, c: 6 })[name] ?? 0, { isNear: (name) => name === "a" });
    return pick({ views, loads, bound: undefined, tried: [] });
  };
  assert.equal([chosenAt(4), chosenAt(5), chosenAt(6)], ["a", "a", "b"]);
  const loads = loadsOf(() => 0, { isNear: (name) => name === "a" });
  assert.is(pick({ views, loads, bound: undefined, tried: ["a"] }), "b");
});

test.run();
