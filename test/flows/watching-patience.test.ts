import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { h2Limits } from "../../src/h2/core/limits.ts";
import { errorCode } from "../../src/h2/core/protocol-error.ts";
import { upstreamLimits } from "../../src/upstream/pool/limits.ts";
import { watchLimits } from "../../src/watch/limits.ts";
import { type PlayedBackend, PlayedPath } from "../support/path.ts";
import { blackHole, goAway, hold, lineOf, linesOf, PlayedWatch } from "../support/watch-path.ts";

const test = suite("watch-session: patience");

const retryAfter = (seconds: string): Field => new Field("retry-after", seconds);

test("a backend that is busy for long is not waited for while another one answers", () => {
  const path = new PlayedPath(["a", "b", "c"]);
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  watch.kill(watch.from);
  const others = [...path.played.values()].filter((one) => one !== watch.from);
  others.find((one) => one.asked.length > 0)?.last.answer(429, "", [retryAfter("30")]);
  watch.advance(100);
  assert.equal(
    others.map((one) => one.asked.length),
    [1, 1],
  );
});

test("a stall of the proxy is not counted: a watch whose backend is away goes on when that comes back behind it (F11)", () => {
  const path = new PlayedPath(["a", "b"], { down: ["b"] });
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  watch.kill(watch.from);
  watch.advance(2000);
  path.clock.stall(2 * watchLimits.resumeMs);
  watch.advance(1000);
  watch.has("+8a");
  watch.from.isDown = false;
  watch.advance(2000);
  watch.serve(watch.from, "~9a");
  watch.has("+8a ~9a");
});

test("no Retry-After keeps a watch waiting beyond its fifteen seconds", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.kill(watch.from);
  watch.to.last.answer(429, "", [retryAfter("3600")]);
  watch.advance(watchLimits.resumeMs);
  watch.has("+8a");
  watch.to.last.answer(429, "", [retryAfter("3600")]);
  watch.path.settle();
  watch.has("+8a", "ended");
});

test("a cache that is being filled is waited for as long as a watch is tried, and slows no other move", () => {
  const json = new Field("content-type", "application/json");
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.kill(watch.from);
  for (let turn = 1; turn <= 10; turn += 1) {
    assert.is(watch.to.asked.length, turn);
    watch.to.last.answer(429, '{"kind":"Status","code":429}', [json, retryAfter("1")]);
    watch.path.settle();
    assert.ok(watch.path.migrations.pace.isOpen(2));
    watch.advance(1000);
  }
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
});

test("a backend that has no room for three seconds is waited for when there is no other", () => {
  const path = new PlayedPath(["a", "b"], { down: ["b"] });
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  watch.to.maxStreams = 0;
  watch.to.isDown = false;
  watch.advance(2000);
  assert.ok(path.backends.views.every(({ state }) => state === "ready"));
  watch.kill(watch.from);
  watch.advance(3000);
  watch.has("+8a");
  watch.to.maxStreams = 100;
  watch.advance(1500); // a backend without room is dialed once a second
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
});

test("so is one that refuses every new socket at once: a backend that was not asked was not asked in vain", () => {
  const path = new PlayedPath(["a", "b"], { down: ["b"] });
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  watch.to.maxStreams = 0;
  watch.to.isDown = false;
  watch.advance(2000);
  watch.to.isDown = true;
  watch.kill(watch.from);
  watch.advance(4000);
  assert.ok(path.backends.views.some(({ state }) => state === "ready"));
  watch.has("+8a");
  watch.to.isDown = false;
  watch.to.maxStreams = 100;
  watch.advance(2000);
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
});

test("nor is it waited for beyond the fifteen seconds", () => {
  const path = new PlayedPath(["a", "b"], { down: ["b"] });
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  watch.to.maxStreams = 0;
  watch.to.isDown = false;
  watch.advance(2000);
  watch.kill(watch.from);
  watch.advance(watchLimits.resumeMs + upstreamLimits.connectionWaitMs + 500);
  watch.has("+8a", "ended");
});

test("the first stream is kept until the second stream has sent a whole event, because that event may be an ERROR (row 24)", () => {
  const watch = new PlayedWatch();
  const first = watch.serve(watch.from, "+8a");
  goAway(watch.from);
  watch.advance(50);
  watch.serve(watch.to);
  const line = lineOf("!410");
  for (const half of [line.slice(0, 30), line.slice(30)]) {
    watch.to.last.say(half);
    watch.path.settle();
  }
  assert.is(first.resetCode, undefined);
  first.say(linesOf("~9a"));
  watch.path.settle();
  watch.has("+8a ~9a");
});

test("a watch that is answered when its backend was taken out already moves all the same", () => {
  const watch = new PlayedWatch();
  const [name = ""] = [...watch.path.played].find(([, one]) => one === watch.to) ?? [];
  watch.path.reconcile([name]);
  watch.serve(watch.from, "+8a");
  watch.advance(50);
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
});

test("a watch is not moved before the marker of its initial events, because no other backend would send the marker (row 3)", () => {
  const query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
  for (const words of ["+9a ~12b", "+9a -12b", "+9a =12"]) {
    const watch = new PlayedWatch({ query });
    watch.serve(watch.from, words);
    watch.kill(watch.from);
    watch.has(words, "ended");
    assert.is(watch.to.asked.length, 0);
  }
});

test("a watch that is about to end for a drain ends, even if its backend dies first", () => {
  for (const query of ["resourceVersion=7", "resourceVersion=0"]) {
    const watch = new PlayedWatch({ query });
    watch.serve(watch.from);
    for (const exchange of watch.path.exchanges.live) assert.ok(exchange.letWatchEnd());
    watch.advance(100);
    watch.kill(watch.from);
    watch.advance(watchLimits.shortWatchMs - 100);
    watch.has("", "ended");
    assert.is(watch.to.asked.length, 0);
  }
});

test("while a successor is asked, a slow reader is felt by the backend that serves it (A19)", () => {
  for (const isAnswered of [false, true]) {
    const watch = new PlayedWatch();
    const first = watch.serve(watch.from, "+8a");
    goAway(watch.from);
    watch.advance(50);
    if (isAnswered) watch.serve(watch.to);
    watch.ear.isReading = false;
    for (let version = 9; version < 4009; version += 1) {
      first.say(linesOf(`+${version}${"x".repeat(1000)}`));
      watch.advance(1);
    }
    // With two streams, received bytes are credited at once, until the client has been recognised as slow.
    const most = 2 * h2Limits.streamWindowBytes + (isAnswered ? 1200 * watchLimits.slowWatchMs : 0);
    assert.ok(watch.path.buffered.bytes <= most, `${watch.path.buffered.bytes} wait`);
    assert.is(watch.to.last.resetCode, isAnswered ? errorCode.CANCEL : undefined);
  }
});

const probedPath = (): PlayedPath => {
  const path = new PlayedPath(["a", "b"], { isProbed: true });
  path.clock.advance(2_000);
  return path;
};

test("the only backend left is slow, and suspected for a moment three times: its watch waits for it", () => {
  const path = probedPath();
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  watch.kill(watch.from);
  for (let pulse = 0; pulse < 3; pulse += 1) {
    const letGo = hold(watch.to);
    watch.advance(800);
    letGo();
    watch.advance(1_200);
  }
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
});

test("the only backend left queues the watch for ten seconds: it is asked once", () => {
  const watch = new PlayedWatch({ path: probedPath() });
  watch.serve(watch.from, "+8a");
  watch.kill(watch.from);
  watch.advance(10_000);
  assert.is(watch.to.asked.length, 1);
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
});

test("the only backend that answers has asked for patience, and /readyz fails there: it is asked again", () => {
  const watch = new PlayedWatch({ path: probedPath() });
  watch.serve(watch.from, "+8a");
  watch.to.readyz = "failing";
  watch.advance(1_500);
  watch.kill(watch.from);
  watch.advance(300);
  watch.to.last.answer(429);
  watch.advance(3_000);
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
});

test("a watch that waits for any backend ends at its client's own deadline, as the server would end it", () => {
  const watch = new PlayedWatch({ query: "resourceVersion=7&timeoutSeconds=5" });
  watch.serve(watch.from, "+8a");
  watch.advance(2_000);
  watch.kill(watch.to);
  watch.kill(watch.from);
  watch.advance(5_000);
  watch.has("+8a", "ended");
  assert.equal([...watch.path.migrations.ends], [], "no watch ended by the proxy");
});

test("a watch whose backends are all silent ends at its client's own deadline, though nothing else is given up (D14)", () => {
  const watch = new PlayedWatch({ query: "resourceVersion=7&timeoutSeconds=5" });
  watch.serve(watch.from, "+8a");
  watch.from.last.say(lineOf("~9a").slice(0, 9));
  watch.advance(4_000);
  blackHole(watch.to);
  blackHole(watch.from);
  watch.advance(999);
  watch.has("+8a");
  watch.advance(500);
  watch.has("+8a", "ended");
  assert.equal([...watch.path.migrations.ends], [], "no watch ended by the proxy");
});

test("a watch that waits for a cache that is being filled ends at its client's own deadline", () => {
  const json = new Field("content-type", "application/json");
  const watch = new PlayedWatch({ query: "resourceVersion=7&timeoutSeconds=5" });
  watch.serve(watch.from, "+8a");
  watch.kill(watch.from);
  for (let count = 0; count < 7; count += 1) {
    if (!watch.ear.isEnded)
      watch.to.last.answer(429, '{"kind":"Status","code":429}', [json, retryAfter("1")]);
    watch.path.settle();
    watch.advance(1_000);
  }
  watch.has("+8a", "ended");
});

test("a watch that was told to end ends for that reason, whatever becomes of its backend meanwhile", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from);
  for (const exchange of watch.path.exchanges.live) exchange.letWatchEnd();
  watch.advance(100);
  watch.kill(watch.from);
  watch.advance(1_200);
  assert.equal([...watch.path.migrations.ends], [["drained", 1]]);
});

test("an end by its server that client-go would take for a failure is held back, too (row 18)", () => {
  for (const seconds of [1, 3]) {
    const watch = new PlayedWatch({ query: `resourceVersion=7&timeoutSeconds=${seconds}` });
    watch.serve(watch.from);
    watch.advance(1_000);
    watch.end(watch.from);
    watch.has("");
    watch.advance(watchLimits.shortWatchMs - 1_000);
    watch.has("", "ended");
    assert.equal([...watch.path.migrations.ends], [], "no watch ended by the proxy");
  }
});

test("behind an ERROR it comes at once", () => {
  const watch = new PlayedWatch({ query: "resourceVersion=7&timeoutSeconds=3" });
  watch.serve(watch.from, "!500");
  watch.end(watch.from);
  watch.has("!500", "ended");
});

test("backends that fall one after another before they answer are no attempts in vain", () => {
  const path = new PlayedPath(["a", "b", "c", "d", "e"]);
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  const others = [...path.played.values()].filter((one) => one !== watch.from);
  watch.kill(watch.from);
  for (let fallen = 0; fallen < 3; fallen += 1) {
    watch.advance(100);
    const asked = others.find(({ isDown, asked: { length } }) => !isDown && length > 0);
    assert.ok(asked !== undefined, `${fallen} have fallen`);
    watch.kill(asked);
  }
  watch.advance(100);
  const [last] = others.filter(({ isDown }) => !isDown);
  if (last !== undefined) watch.serve(last, "~9a");
  watch.has("+8a ~9a");
});

test("bookmarks that only the proxy asked for are progress: a watch with nothing else is moved as often as need be", () => {
  const path = new PlayedPath(["a", "b"], { alwaysRequestBookmarks: true });
  const watch = new PlayedWatch({ path });
  let [from, to] = [watch.from, watch.to];
  watch.serve(from, "+8a");
  for (let round = 0; round < 5; round += 1) {
    watch.advance(2_000);
    from.last.side?.reset(2);
    path.settle();
    watch.advance(300);
    [from, to] = [to, from];
    watch.serve(from, `=${10 + round}`);
  }
  watch.has("+8a");
});

test("a successor that is lost before it took the watch is not the last: another is asked for a little later", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  goAway(watch.from);
  watch.advance(100);
  assert.is(watch.to.asked.length, 1);
  watch.to.last.side?.reset(2);
  const asked = (): number => watch.from.asked.length + watch.to.asked.length;
  const before = asked();
  watch.advance(watchLimits.declinedMs + 100);
  assert.is(asked(), before + 1);
});

const custom = { resource: "/apis/stable.example.com/v1/crontabs" };
const ends = (watch: PlayedWatch): unknown => Object.fromEntries(watch.path.migrations.ends);

test("a resource that no backend serves any more ends at once, for a reason of its own", () => {
  const watch = new PlayedWatch({ ...custom, path: new PlayedPath(["a", "b", "c", "d", "e"]) });
  watch.serve(watch.from, "+8a");
  watch.advance(watchLimits.shortWatchMs);
  watch.end(watch.from);
  const asked = new Set<PlayedBackend>();
  for (let count = 1; count <= 5; count += 1) {
    watch.has("+8a");
    const next = [...watch.path.played.values()].find(
      (one) => !asked.has(one) && one.asked.at(-1)?.heads.length === 0,
    );
    if (next === undefined) throw new Error(`${count - 1} were asked`);
    asked.add(next);
    next.last.answer(404);
    watch.path.settle();
  }
  watch.has("+8a", "ended");
  assert.equal(ends(watch), { not_found: 1 });
});

test("one backend that does not serve it yet is not all of them", () => {
  const watch = new PlayedWatch(custom);
  watch.serve(watch.from, "+8a");
  watch.kill(watch.from);
  watch.to.last.answer(404);
  watch.advance(watchLimits.parkedMs);
  watch.to.last.answer(404);
  watch.has("+8a");
  watch.from.isDown = false;
  watch.advance(2000);
  const taken = [watch.from, watch.to].find((one) => one.last.heads.length === 0);
  if (taken === undefined) throw new Error("No backend is asked any more");
  watch.serve(taken, "~9a");
  watch.has("+8a ~9a");
});

test("where the only one that answers does not serve it, it ends after a second, for that reason", () => {
  const watch = new PlayedWatch(custom);
  watch.serve(watch.from, "+8a");
  watch.kill(watch.from);
  for (let at = 0; at < watchLimits.resumeMs; at += watchLimits.parkedMs) {
    if (watch.to.last.heads.length === 0 && !watch.ear.isEnded) watch.to.last.answer(404);
    watch.advance(watchLimits.parkedMs);
  }
  watch.has("+8a", "ended");
  assert.equal(ends(watch), { not_found: 1 });
});

test.run();
