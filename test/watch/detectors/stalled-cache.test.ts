import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { type PlayedBackend, PlayedPath } from "../../support/path.ts";
import { ok, PlayedWatch, type WatchOptions } from "../../support/watch-path.ts";

/** Two backends that both answer, one with a stalled watch cache (F5, watch.md §6.3 and §11 row 11). */
const test = suite("watch/detectors/stalled-cache");

/** A watch at each of two backends. The cache of `frozen`'s backend stalls. */
function pair(options: WatchOptions = {}): { path: PlayedPath; frozen: PlayedWatch; going: PlayedWatch } {
  const path = options.path ?? new PlayedPath(["a", "b"]);
  const going = new PlayedWatch({ path });
  going.serve(going.from);
  const frozen = new PlayedWatch({ ...options, path });
  assert.is(frozen.from, going.to, "the one with fewer streams");
  frozen.serve(frozen.from);
  path.clock.advance(3000);
  return { path, frozen, going };
}

/** Makes the backend accept the last request that it received. */
function served(backend: PlayedBackend): void {
  backend.last.side?.sendHeaders(ok, false);
}

test("a watch that gets no events, while another backend sends events of its resource, continues at the other backend within ten seconds (row 11)", () => {
  const { path, frozen, going } = pair();
  going.say(going.from, "+8a");
  path.clock.advance(1000);
  assert.match(frozen.queryOf(frozen.to), /^resourceVersion=7&timeoutSeconds=\d+$/);
  served(frozen.to);
  frozen.say(frozen.to, "+8a ~9a");
  frozen.has("+8a ~9a");
  const { asked } = frozen.from;
  assert.is(asked.at(-1)?.resetCode, undefined, "it may come on yet");
  path.clock.advance(limits.behindMs + watchLimits.stallLookMs);
  assert.is.not(asked.at(-1)?.resetCode, undefined, "the old stream is closed");
  const [entry, ...more] = frozen.entries("cache.stalled");
  const { backend, resource, version, peersVersion, detector, watches } = entry ?? {};
  assert.equal(more, []);
  assert.equal(
    { backend, resource, version, peersVersion, detector, watches },
    { backend: "b", resource: "/configmaps", version: "", peersVersion: "8", detector: "watch", watches: 1 },
  );
  path.clock.advance(watchLimits.logMs);
  assert.is(frozen.entries("watches.moved")[0]?.reason, "stale");
});

test("a successor that has nothing to show yet is the watch as soon as it has not refused", () => {
  const { path, frozen, going } = pair();
  going.say(going.from, "+8a");
  path.clock.advance(1000);
  served(frozen.to);
  path.clock.advance(limits.behindMs + 2 * watchLimits.stallLookMs);
  assert.is(path.migrations.moves.get("stale"), 1);
  frozen.say(frozen.to, "+8a");
  frozen.has("+8a");
});

test("a watch that would not have shown it is left alone: a quiet one with a selector, for hours (D7)", () => {
  for (const query of [
    "resourceVersion=7&labelSelector=a",
    "resourceVersion=7&fieldSelector=metadata.name%3Dx",
  ]) {
    const { path, frozen, going } = pair({ query });
    for (let version = 8; version < 100; version += 1) {
      going.say(going.from, `~${version}a`);
      path.clock.advance(60_000);
    }
    assert.equal([frozen.from.asked.length, frozen.to.asked.length], [1, 1]);
    assert.equal(frozen.entries("cache.stalled"), []);
  }
});

test("nor is a healthy one that is silent for 120 s, as its peers are", () => {
  const { path, frozen, going } = pair({ query: "resourceVersion=7&allowWatchBookmarks=true" });
  for (const one of [frozen, going]) one.say(one.from, "+8a");
  path.clock.advance(120_000);
  assert.equal([frozen.from.asked.length, frozen.to.asked.length], [1, 1]);
  assert.equal(frozen.entries("cache.stalled"), []);
});

test("a bookmark that is behind what others showed long before proves it, whatever the watch sees", () => {
  const { path, frozen, going } = pair({
    query: "resourceVersion=7&allowWatchBookmarks=true&labelSelector=a",
  });
  frozen.say(frozen.from, "=8");
  going.say(going.from, "+9a");
  path.clock.advance(59_000);
  assert.equal(frozen.entries("cache.stalled"), []);
  frozen.say(frozen.from, "=8");
  path.clock.advance(watchLimits.stallLookMs);
  assert.is(frozen.entries("cache.stalled")[0]?.detector, "bookmark");
  served(frozen.to);
  frozen.say(frozen.to, "+10a");
  frozen.has("=8 =8 +10a");
});

test("a watch that was moved to a backend that has not caught up in 70 s is moved again (§6.4)", () => {
  const path = new PlayedPath(["a", "b", "c"]);
  const going = new PlayedWatch({ path, query: "resourceVersion=7&allowWatchBookmarks=true" });
  going.serve(going.from, "+8a =8");
  const watch = new PlayedWatch({
    path,
    query: "resourceVersion=8&allowWatchBookmarks=true&labelSelector=a",
  });
  watch.serve(watch.from, "=9");
  going.say(going.from, "~11a");
  watch.say(watch.from, "~11a");
  // The only other candidate at that time is a backend whose cache has stalled at version 10.
  const late = [...path.played.values()].find((one) => one !== going.from && one !== watch.from);
  if (late === undefined) throw new Error("Three backends are played");
  watch.kill(watch.from);
  assert.is(late.asked.length, 1);
  served(late);
  path.clock.advance(3000);
  going.say(going.from, "~12b");
  path.clock.advance(watchLimits.caughtUpMs - 5000);
  assert.is(going.from.asked.length, 1);
  path.clock.advance(10_000);
  assert.is(going.from.asked.length, 2, "and not to the one that was just left");
  served(going.from);
  watch.say(going.from, "~13a");
  watch.has("=9 ~11a ~13a");
});

test("no new request is sent to a stalled cache for that resource, nor moved there, until it has caught up", () => {
  const { path, frozen, going } = pair();
  going.say(going.from, "+8a");
  path.clock.advance(limits.behindMs + 2 * watchLimits.stallLookMs);
  served(frozen.to);
  frozen.say(frozen.to, "+8a");
  const count = frozen.from.asked.length;
  for (let index = 0; index < 4; index += 1) path.client().ask("GET", "/api/v1/configmaps?resourceVersion=0");
  path.settle();
  assert.is(frozen.from.asked.length, count);
  path.client().ask("GET", "/api/v1/pods");
  path.settle();
  assert.is(frozen.from.asked.length, count + 1, "other resources are none of its business");
  path.clock.advance(watchLimits.stallSpellMs);
  const back = new PlayedWatch({ path });
  assert.ok(back.from === frozen.from, "it is tried again");
  back.serve(back.from, "+8a");
  path.clock.advance(watchLimits.stallLookMs);
  assert.equal(frozen.entries("cache.recovered"), [
    { kind: "cache.recovered", backend: "b", resource: "/configmaps", version: "8" },
  ]);
});

test("one that cannot go on elsewhere ends, since its client can", () => {
  const { path, frozen, going } = pair({ query: "sendInitialEvents=false" });
  going.say(going.from, "+8a");
  path.clock.advance(limits.behindMs + watchLimits.caughtUpMs);
  frozen.has("");
  path.clock.advance(2 * watchLimits.hungLookMs);
  frozen.has("", "ended");
  assert.is(path.migrations.ends.get("stale"), 1);
});

test("without a better backend it stays where it is", () => {
  const { path, frozen, going } = pair({ query: "sendInitialEvents=false" });
  going.say(going.from, "+8a");
  path.clock.advance(limits.behindMs + 2 * watchLimits.stallLookMs);
  going.kill(going.from);
  path.clock.advance(10 * watchLimits.caughtUpMs);
  frozen.has("");
});

/** A watch that was lost at version 900 and resumed at a backend whose etcd was restored from an older copy. */
function restored(): { path: PlayedPath; old: PlayedWatch; young: PlayedWatch } {
  const path = new PlayedPath(["a", "b"]);
  const old = new PlayedWatch({ path });
  old.serve(old.from, "+900a");
  old.kill(old.from);
  served(old.to);
  path.clock.advance(3000);
  const young = new PlayedWatch({ path, query: "resourceVersion=20" });
  assert.is(young.from, old.to);
  served(young.from);
  return { path, old, young };
}

test("a watch that continues from a version that a restored etcd has not reached yet ends, because it would be silent for long (row 13)", () => {
  const { path, old, young } = restored();
  young.say(young.from, "+21a");
  path.clock.advance(watchLimits.caughtUpMs - watchLimits.hungLookMs);
  old.has("+900a");
  path.clock.advance(2 * watchLimits.hungLookMs);
  old.has("+900a", "ended");
  young.has("+21a");
  path.clock.advance(watchLimits.logMs);
  assert.is(old.entries("watches.ended")[0]?.reason, "version_rollback");
});

test("a watch whose backend reaches the watch's version continues, and so does a watch whose resource has had no event (row 13)", () => {
  for (const words of ["+21a +901b", ""]) {
    const { path, old, young } = restored();
    young.say(young.from, words);
    path.clock.advance(10 * watchLimits.caughtUpMs);
    old.has("+900a");
  }
});

test("a client that does not read is no witness", () => {
  const { path, frozen, going } = pair();
  frozen.ear.isReading = false;
  const filler = "+8".padEnd(40_000, "x");
  frozen.say(frozen.from, Array.from({ length: 10 }, () => filler).join(" "));
  path.clock.advance(watchLimits.slowWatchMs);
  going.say(going.from, "~9a");
  path.clock.advance(3 * limits.behindMs);
  assert.equal(frozen.entries("cache.stalled"), []);
});

test.run();
