import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { sliceLimits } from "../../../src/base/slices.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { bearer, type PlayedBackend, PlayedPath } from "../../support/path.ts";
import { blackHole, goAway, linesOf, ok, PlayedWatch } from "../../support/watch-path.ts";

const test = suite("migrations");

/** Opens `count` watches of a few clients, all served by one backend. */
function many(
  count: number,
  names = ["a", "b"],
): {
  path: PlayedPath;
  from: PlayedBackend;
  to: PlayedBackend;
  ended: () => number;
} {
  const path = new PlayedPath(names);
  const { from, to, client } = new PlayedWatch({ path });
  // Proves the token, because the proxy sends only a few requests with an unproven token at once (D15).
  client.ask("GET", "/api", [bearer("t")]);
  path.settle();
  from.asked.pop()?.side?.sendHeaders(ok, true);
  path.settle();
  let at = client;
  const ears = Array.from({ length: count - 1 }, (_, index) => {
    if (index % 50 === 49) {
      at = path.client();
      at.downstream.client.bind(client.downstream.client.backend ?? "");
    }
    return at.ask("GET", "/api/v1/pods?watch=true&resourceVersion=7", [bearer("t")]);
  });
  for (let turn = 0; turn < 20 && from.asked.length < count; turn += 1) path.clock.advance(50);
  assert.is(from.asked.length, count);
  for (const asked of from.asked) {
    asked.side?.sendHeaders(ok, false);
    asked.say(linesOf("+8a"));
  }
  path.settle();
  return { path, from, to, ended: () => ears.filter(({ isEnded }) => isEnded).length };
}

/** The most watches that move at once, without the answer of a backend. */
const atOnce = watchLimits.moveWindow.initial + watchLimits.moveWindow.beyondBurst;

test("a mass of lost watches moves as fast as the other backend accepts watches, a few of them at once (D6)", () => {
  const { path, from, to, ended } = many(400);
  from.kill();
  path.settle();
  assert.is(path.migrations.waiting, 400 - atOnce);
  path.clock.advance(100);
  const unanswered = watchLimits.moveWindow.beyondPerSecond / 10;
  assert.ok(
    Math.abs(400 - atOnce - unanswered - path.migrations.waiting) <= 1,
    String(path.migrations.waiting),
  );
  for (let ms = 0, served = 0; ms < 400; ms += 2) {
    for (; served < to.asked.length; served += 1) to.asked[served]?.side?.sendHeaders(ok, false);
    path.clock.advance(2);
  }
  assert.equal([path.migrations.waiting, to.asked.length, ended()], [0, 400, 0]);
  assert.is(path.migrations.pace.state.unanswered, 0);
});

test("every request for a watch is settled, however it ends", () => {
  const { path, from, to } = many(20);
  from.kill();
  path.settle();
  const [accepted, refused, reset, cancelled, ...lost] = to.asked;
  accepted?.side?.sendHeaders(ok, false);
  refused?.answer(500, "");
  reset?.side?.reset(errorCode.REFUSED_STREAM);
  cancelled?.answer(429, "");
  assert.ok(lost.length > 0);
  to.kill();
  for (const backend of [from, to]) backend.isDown = true;
  path.clock.advance(2 * watchLimits.resumeMs);
  assert.is(path.migrations.pace.state.unanswered, 0);
});

test("a backend that answers PINGs but no watch does not stop the moves to a third one", () => {
  const { path, from, to } = many(2000, ["a", "b", "c"]);
  const third = [...path.played.values()].find((one) => one !== from && one !== to);
  from.kill();
  let served = 0;
  const serve = (ms: number): void => {
    for (const until = path.clock.now() + ms; path.clock.now() < until; path.clock.advance(2))
      for (; served < (third?.asked.length ?? 0); served += 1)
        third?.asked[served]?.side?.sendHeaders(ok, false);
  };
  serve(3000);
  assert.ok(served > 1500, String(served));
  serve(watchLimits.resumeAnswerMs);
  assert.is(served, 2000);
  assert.is(path.migrations.pace.state.unanswered, 0);
});

test("the watches of a frozen apiserver get hedges as fast as the other backend accepts them, not only at each tick", () => {
  const { path, from, to } = many(300);
  blackHole(from);
  for (let ms = 0, served = 0; ms < 1000; ms += 2) {
    path.clock.advance(2);
    for (; served < to.asked.length; served += 1) to.asked[served]?.side?.sendHeaders(ok, false);
  }
  assert.is(to.asked.length, 300);
  assert.is(path.migrations.pace.state.unanswered, 0);
});

test("a watch that waits for its hedge gets none once its apiserver answers again", () => {
  const { path, from, to } = many(300);
  const releases = from.sessions.map(({ cable }) => cable.hold());
  for (let ms = 0; ms < 1000 && to.asked.length < atOnce; ms += 2) path.clock.advance(2);
  for (const release of releases) release();
  path.settle();
  const before = to.asked.length + from.asked.length;
  assert.ok(to.asked.length < 100, String(to.asked.length));
  path.clock.advance(3000);
  assert.is(to.asked.length + from.asked.length, before);
});

test("on a busy machine, where each slice is short, all watches continue once a backend is back", () => {
  const { path, from, to, ended } = many(60);
  from.kill();
  to.kill();
  // Each reading of the clock takes so long that a slice ends after a few watches.
  const { clock } = path;
  const now = clock.now.bind(clock);
  clock.now = () => (clock.stall(sliceLimits.sliceMs / 20), now());
  for (let turn = 0; turn < 40; turn += 1) clock.advance(watchLimits.parkedMs / 10);
  clock.now = now;
  assert.is(path.migrations.waiting, 60);
  to.isDown = false;
  for (let turn = 0; turn < 80; turn += 1) clock.advance(watchLimits.parkedMs / 10);
  assert.equal([path.migrations.waiting, ended()], [0, 0]);
});

test("watches of the control plane and of leaders move before those of nodes, and these before all others", () => {
  const path = new PlayedPath(["a", "b"]);
  const { from, to, client } = new PlayedWatch({ path });
  client.ask("GET", "/api", [bearer("t")]);
  path.settle();
  from.asked.pop()?.side?.sendHeaders(ok, true);
  path.settle();
  const agents = ["kubectl", "kubelet", "kube-scheduler"];
  // The watches of the control plane are opened last.
  for (const agent of agents.flatMap((one) => [one, one, one, one])) {
    const own = path.client();
    own.downstream.client.bind(client.downstream.client.backend ?? "");
    for (let count = 0; count < 50; count += 1) {
      const fields = [bearer("t"), new Field("user-agent", `${agent}/v1`)];
      own.ask("GET", "/api/v1/pods?watch=true&resourceVersion=7", fields);
    }
    path.clock.advance(100);
  }
  path.clock.advance(1000);
  for (const asked of from.asked) {
    asked.side?.sendHeaders(ok, false);
    asked.say(linesOf("+8a"));
  }
  path.settle();
  from.kill();
  path.settle();
  const order = (): string[] =>
    to.asked.map(({ request }) => request.fields.find(({ name }) => name === "user-agent")?.value ?? "none");
  assert.is(order().filter((agent) => agent === "kube-scheduler/v1").length, 200);
  assert.is(order().filter((agent) => agent === "kubelet/v1").length, watchLimits.moveWindow.beyondBurst);
  path.clock.advance(1500);
  assert.is(order().indexOf("kubectl/v1") > order().lastIndexOf("kubelet/v1"), true, order().join());
});

test("a mass of moves is told in one line of the journal", () => {
  const { path, from, to } = many(100);
  from.kill();
  path.settle();
  for (let turn = 0, served = 0; turn < 20; turn += 1) {
    path.clock.advance(20);
    for (; served < to.asked.length; served += 1) to.asked[served]?.side?.sendHeaders(ok, false);
    path.settle();
  }
  path.clock.advance(watchLimits.logMs);
  const told = path.entries.filter(({ kind }) => kind === "watches.moved");
  assert.is(told.length, 1);
  assert.is(path.migrations.moves.get("lost"), 100);
});

test("watches of a backend that goes leave it at two hundred a second, and lose nothing (W9)", () => {
  const { path, from, to } = many(100);
  from.isDown = true;
  goAway(from);
  path.clock.advance(250);
  const moved = to.asked.length;
  assert.ok(moved >= 40 && moved <= 60, `${moved} of the 50 that are due`);
  path.clock.advance(750);
  assert.is(to.asked.length, 100);
});

test("a backend that is overloaded slows them down", () => {
  const { path, from, to } = many(300);
  from.kill();
  path.settle();
  to.last.answer(429);
  path.settle();
  const before = path.migrations.waiting;
  path.clock.advance(100);
  assert.ok(before - path.migrations.waiting <= 60, String(before - path.migrations.waiting));
});

test("five caches that are being filled slow no watch of another resource down", () => {
  const { path, from, to } = many(300);
  from.kill();
  path.settle();
  const json = new Field("content-type", "application/json");
  for (const asked of to.asked.slice(-5)) asked.answer(429, '{"kind":"Status","code":429}', [json]);
  path.settle();
  const before = path.migrations.waiting;
  path.clock.advance(100);
  const moved = before - path.migrations.waiting;
  assert.ok(moved >= watchLimits.moveWindow.beyondPerSecond / 10, String(moved));
});

test("a backend that falls upstream connection by upstream connection is asked once, and again only after a pause", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.kill(watch.to);
  watch.advance(3000);
  for (let turn = 0; turn < 3; turn += 1) {
    watch.from.last.side?.reset(errorCode.INTERNAL_ERROR);
    watch.path.settle();
  }
  assert.is(watch.from.asked.length, 1);
  watch.advance(watchLimits.parkedMs);
  watch.serve(watch.from, "~9a");
  watch.has("+8a ~9a");
});

test("a hole under one upstream connection is left for another upstream connection of the same backend", () => {
  const path = new PlayedPath(["a", "b"], { warm: 2 });
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  // The connection with an open stream carries the watch.
  const holes = watch.from.sessions.filter(({ session }) => session.openCount > 0);
  for (const { cable } of holes) cable.blackHole();
  watch.advance(750);
  assert.equal([watch.from.asked.length, watch.to.asked.length], [2, 0]);
  watch.serve(watch.from, "~9a");
  watch.has("+8a ~9a");
});

test("where no other backend answers, a new upstream connection to the same backend is dialled", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.kill(watch.to);
  watch.advance(3000);
  // Every upstream connection that could carry the watch becomes a black hole. The backend itself works, so new
  // connections do.
  for (const { session, cable } of watch.from.sessions) if (session.openCount > 0) cable.blackHole();
  watch.advance(1000);
  assert.is(watch.from.asked.length, 2);
  watch.serve(watch.from, "~9a");
  watch.has("+8a ~9a");
});

test("a hedge that is in doubt itself makes room for another", () => {
  const path = new PlayedPath(["a", "b", "c"]);
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  blackHole(watch.from);
  watch.advance(750);
  const [hedge, third] = [...path.played.values()]
    .filter((one) => one !== watch.from)
    .toSorted((x, y) => y.asked.length - x.asked.length);
  if (hedge === undefined || third === undefined) throw new Error("Three are played");
  assert.equal([hedge.asked.length, third.asked.length], [1, 0]);
  blackHole(hedge);
  watch.advance(1200);
  assert.is(third.asked.length, 1);
  watch.serve(third, "~9a");
  watch.has("+8a ~9a");
});

test("an upstream connection that goes while its backend stays sends its watches to another upstream connection there", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  const [one] = watch.from.sessions.filter(({ session }) => session.openCount > 0);
  one?.session.goAway();
  watch.advance(100);
  assert.equal([watch.from.asked.length, watch.to.asked.length], [2, 0]);
  watch.serve(watch.from, "~9a");
  watch.has("+8a ~9a");
  assert.is(watch.from.asked[0]?.resetCode, errorCode.CANCEL);
});

test("however many are refused at once, one timer sets the pace", () => {
  const { path, from, to } = many(60);
  const [name = ""] = [...path.played].find(([, one]) => one === to) ?? [];
  const connections = path.pools.poolOf(name);
  if (connections === undefined) throw new Error("It has connections");
  connections.take = () => undefined;
  connections.wait = (waiter) => waiter.refused(new Failure("overload", "proxy", "Full"));
  path.migrations.pace.slowDown();
  let timers = 0;
  const { after } = path.clock;
  path.clock.after = (ms, run) => {
    if (ms === watchLimits.movePauseMs) timers += 1;
    return after(ms, run);
  };
  from.kill();
  path.clock.advance(1000);
  assert.ok(timers <= 1000 / watchLimits.movePauseMs + 1, `${timers} timers in a second`);
});

test.run();
