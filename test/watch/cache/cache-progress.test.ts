import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { CacheProgress, CacheTracker, type LagSuspicion } from "../../../src/watch/cache/cache-progress.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { bookmark, names, suspected, two } from "../../support/caches.ts";

const test = suite("watch/cache/cache-progress");

const second = 1000;

test("a backend that has not shown for eight seconds what another has is suspected", () => {
  const { caches, a, b } = two();
  b.showEvent("7", 0);
  a.showEvent("9", 0);
  assert.equal(names(caches, 0), []);
  assert.equal(names(caches, 7 * second), []);
  a.showEvent("15", 7 * second);
  assert.equal(names(caches, 8 * second), ["b 9 8000"]);
  assert.equal(names(caches, 20 * second), ["b 9 20000"], "for as long as it stands still");
});

test("one that comes level, or moves at all, is not", () => {
  const { caches, a, b } = two();
  a.showEvent("9", 0);
  caches.stalling(0);
  b.showEvent("9", second);
  assert.equal(names(caches, 10 * second), []);
  a.showEvent("14", 11 * second);
  caches.stalling(11 * second);
  b.showEvent("12", 20 * second);
  assert.equal(names(caches, 21 * second), [], "it lags, and goes on: its time begins anew");
  assert.equal(names(caches, 30 * second), ["b 14 10000"]);
});

test("an older version changes nothing", () => {
  const { a } = two();
  a.showEvent("10", 0);
  a.showEvent("9", 0);
  assert.equal([a.version, a.event], ["10", "10"]);
});

test("a bookmark of another backend may concern other resources: no backend is measured by it", () => {
  const { caches, a, b } = two();
  b.showEvent("7", 0);
  a.showBookmark(bookmark("99"), 0);
  caches.stalling(0);
  assert.equal(names(caches, 60 * second), []);
});

test("a bookmark that comes eight seconds later and is still behind proves it; a marker or an earlier one does not", () => {
  const { caches, a, b } = two();
  b.showBookmark(bookmark("7"), 0);
  a.showEvent("9", 0);
  caches.stalling(0);
  assert.not(suspected(caches, 10 * second).isProven);
  b.showBookmark(bookmark("7", true), 20 * second);
  b.showBookmark(bookmark("7"), limits.behindMs - 1);
  assert.not(suspected(caches, 30 * second).isProven);
  b.showBookmark(bookmark("7"), 60 * second);
  assert.ok(suspected(caches, 60 * second).isProven);
});

test("without a watch there is nothing that it would show", () => {
  const { caches, a, b } = two();
  b.leave(false);
  a.showEvent("9", 0);
  caches.stalling(0);
  assert.equal(names(caches, 60 * second), []);
  b.join(false, 60 * second);
  caches.stalling(60 * second);
  assert.equal(names(caches, 67 * second), [], "its time begins with the watch");
  assert.equal(names(caches, 68 * second), ["b 9 8000"]);
});

test("a backend that has refused a version is known to refuse every older one, of that resource, until it begins anew", () => {
  const { caches, a } = two();
  const resource = a.resource;
  assert.equal(caches.refusing(resource, "9"), []);
  a.refuse("9", "");
  a.refuse("7", "");
  assert.equal(
    ["7", "9", "10", "100"].map((version) => caches.refusing(resource, version)),
    [["a"], ["a"], [], []],
  );
  assert.equal(caches.refusing("/other", "7"), []);
  a.refuse("9", "100");
  assert.equal(caches.refusing(resource, "99"), ["a"], "it says where its cache begins");
  assert.equal(caches.refusing(resource, "100"), []);
  assert.equal([caches.takeForgetful(), caches.takeForgetful()], [[a], []]);
  a.refuse("50", "100");
  assert.equal(caches.takeForgetful(), [], "nothing new");
  caches.forget("a");
  assert.equal(caches.refusing(resource, "7"), []);
});

test("versions of two resources are never compared", () => {
  const { caches, a, b } = two();
  caches.of("a", "apps/deployments").showEvent("99", 0);
  a.showEvent("5", 0);
  b.showEvent("5", 0);
  caches.stalling(0);
  assert.equal(names(caches, 60 * second), []);
});

test("a backend without watches is a measure all the same, until it is gone", () => {
  const { caches, a, b } = two();
  a.showEvent("9", 0);
  a.leave(false);
  b.showEvent("7", 0);
  caches.stalling(0);
  assert.equal(names(caches, 10 * second), ["b 9 10000"]);
  caches.forget("a");
  assert.equal(names(caches, 11 * second), []);
  assert.is.not(caches.of("a", "/pods"), a);
});

test("a backend that is found to stand still is avoided for a minute, then for two, until it shows what it had not", () => {
  const { caches, a, b } = two();
  const at = (now: number): readonly string[] => caches.stalledWith("/pods", now);
  a.showEvent("9", 0);
  caches.stalling(0);
  assert.ok(caches.isClear);
  caches.markStalled(suspected(caches, 10 * second), 10 * second);
  assert.equal([at(69 * second), at(70 * second)], [["b"], []]);
  assert.equal([caches.stalls(69 * second), caches.stalls(70 * second)], [1, 0]);
  caches.markStalled(suspected(caches, 80 * second), 80 * second);
  assert.equal([at(199 * second), at(200 * second)], [["b"], []]);
  assert.equal(caches.takeRecovered(), []);
  b.showEvent("9", 201 * second);
  assert.equal([caches.takeRecovered(), caches.takeRecovered()], [[b], []]);
  assert.equal([caches.isClear as boolean, b.isStalled(81 * second)], [true, false]);
});

test("the time that it is avoided grows to ten minutes, and what is gone is forgotten", () => {
  const { caches, a } = two();
  a.showEvent("9", 0);
  caches.stalling(0);
  for (let times = 0; times < 9; times += 1) caches.markStalled(suspected(caches, 10 * second), 10 * second);
  assert.equal(caches.stalledWith("/pods", 10 * second + watchLimits.stallSpellMostMs - 1), ["b"]);
  assert.equal(caches.stalledWith("/pods", 10 * second + watchLimits.stallSpellMostMs), []);
  caches.forget("b");
  assert.ok(caches.isClear);
});

test("of too many resources the last are not compared, and one that no client watches makes room", () => {
  const { caches } = two();
  const of = (index: number): CacheProgress => caches.of("a", `x/${index}`);
  for (let index = 1; index < watchLimits.comparedResources; index += 1) of(index).join(true, 0);
  assert.is(caches.resources, watchLimits.comparedResources);
  assert.is.not(of(0), of(0), "no room");
  of(7).leave(true);
  assert.is(of(0), of(0));
  assert.is(caches.resources, watchLimits.comparedResources);
});

test("what is measured by is bounded, and the newest stay", () => {
  const { caches, a } = two();
  for (let version = 1; version <= 2 * watchLimits.cacheMarks; version += 1) {
    a.showEvent(String(version + 100), version * second);
    caches.stalling(version * second);
  }
  const { missing } = suspected(caches, 1000 * second);
  assert.equal(
    [missing.length, missing.at(-1)?.version],
    [watchLimits.cacheMarks, String(2 * watchLimits.cacheMarks + 100)],
  );
});

test("a backend that was removed is no measure for any other, and nothing is kept of it", () => {
  const caches = new CacheTracker();
  for (let number = 0; number < 50; number += 1) caches.of(`b-${number}`, "/pods").showEvent("9", 0);
  caches.reconcile(["b-7"]);
  assert.is(caches.of("b-7", "/pods").version, "9");
  assert.is(caches.of("b-8", "/pods").version, "");
});

test("what clients have seen is remembered when the backend that showed it is forgotten, until it is no longer right", () => {
  const { caches, a, b } = two();
  const { resource } = a;
  assert.is(caches.seen("/nothing"), "");
  a.showEvent("900", 0);
  b.showEvent("20", 0);
  assert.is(caches.seen(resource), "900");
  caches.forget("a");
  caches.forget("b");
  assert.is(caches.seen(resource), "900");
  assert.not(caches.knows("b", resource));
  caches.of("b", resource).showEvent("30", 0);
  assert.ok(caches.knows("b", resource));
  assert.is(caches.seen(resource), "900");
  caches.forgetSeen();
  assert.is(caches.seen(resource), "");
});

test("it is as far as its newest event or bookmark, and its newest event is never newer than that", () => {
  const cache = new CacheProgress("a", "/pods");
  cache.showEvent("7", 10);
  cache.showBookmark(bookmark("12"), 20);
  cache.showEvent("9", 30);
  assert.equal([cache.version, cache.event, cache.stillSince, cache.bookmarkAt], ["12", "9", 20, 20]);
  cache.showEvent("8", 40);
  assert.is(cache.event, "9", "an older one on a slower watch");
  cache.showEvent("12", 50);
  assert.is(cache.event, "12");
});

test("the marker of a list is no bookmark that comes every minute", () => {
  const cache = new CacheProgress("a", "/pods");
  cache.showBookmark(bookmark("12", true), 20);
  assert.equal([cache.version, cache.bookmarkAt], ["12", -1]);
});

test("it stands still from its first watch on, not from before", () => {
  const cache = new CacheProgress("a", "/pods");
  cache.join(true, 100);
  cache.join(false, 200);
  assert.equal([cache.stillSince, cache.watches, cache.wholeWatches], [100, 2, 1]);
  cache.leave(true);
  cache.leave(false);
  cache.join(false, 300);
  assert.equal([cache.stillSince, cache.watches, cache.wholeWatches], [300, 1, 0]);
});

test("what it refused is older than the first that it takes; it is told once", () => {
  const cache = new CacheProgress("a", "/pods");
  cache.refuse("5", "20");
  assert.equal([cache.refused, cache.takeForgotten(), cache.takeForgotten()], ["19", true, false]);
  cache.refuse("7", "");
  assert.equal([cache.refused, cache.takeForgotten()], ["19", false]);
});

test("only events are marks: a bookmark of a revision of another resource makes no cache suspect, until an event comes", () => {
  const { caches, a, b } = two();
  a.showEvent("9", 0);
  b.showBookmark(bookmark("100"), 0);
  b.showEvent("10", 0);
  caches.stalling(0);
  assert.equal(suspected(caches, 8 * second).missing, [{ version: "10", at: 0 }]);
});

const afterMs = 500;

/** Two backends, each with one watch that selects the same objects from the beginning. */
class Scope {
  readonly caches = new CacheTracker();
  readonly a = this.#joined("a");
  readonly b = this.#joined("b");

  #joined(backend: string): CacheProgress {
    const cache = this.caches.ofScope(backend, "/configmaps ");
    cache.join(true, 0);
    return cache;
  }

  lagging(now: number): LagSuspicion[] {
    return this.caches.lagging(now, () => afterMs);
  }

  /** Compares the caches as often as the detector does until `until`. Returns the backends whose cache lags then. */
  backends(from: number, until: number): string[] {
    for (let now = from; now < until; now += watchLimits.lagLookMs) this.lagging(now);
    return this.lagging(until).map(({ cache }) => cache.backend);
  }
}

test("a cache of a scope lags when it has not shown for so long what another has, and no sooner", () => {
  const scope = new Scope();
  scope.a.showEvent("5", 1000);
  scope.lagging(1000);
  assert.equal(scope.lagging(1000 + afterMs - 1), []);
  const [suspicion] = scope.lagging(1000 + afterMs);
  assert.equal([suspicion?.cache.backend, suspicion?.version, suspicion?.behindMs], ["b", "5", afterMs]);
});

test("one that has shown it by then does not lag, whatever has come since", () => {
  const scope = new Scope();
  for (let at = 1; at <= 40; at += 1) {
    scope.a.showEvent(String(at), at * 100);
    scope.b.showEvent(String(at - 1), at * 100);
    assert.equal(scope.lagging(at * 100), []);
  }
});

test("one that comes on and still lacks an event for so long lags, though it does not stand still", () => {
  const scope = new Scope();
  scope.a.showEvent("50", 0);
  for (let at = 0; at <= afterMs; at += 100) {
    scope.b.showEvent(String(at / 100 + 1), at);
    assert.equal(scope.backends(at, at), at < afterMs ? [] : ["b"]);
  }
});

test("a first watch has as long to show it as one that was there when it came", () => {
  const scope = new Scope();
  scope.b.leave(true);
  scope.a.showEvent("5", 0);
  assert.equal(scope.backends(0, 1000), []);
  scope.b.join(true, 1000);
  assert.equal([scope.backends(1000, 1000 + afterMs - 1), scope.backends(1500, 1500)], [[], ["b"]]);
});

test("the scope of another resource, and the resource as a whole, are not compared with it", () => {
  const scope = new Scope();
  for (const other of [scope.caches.ofScope("a", "/secrets "), scope.caches.of("a", "/configmaps")]) {
    other.join(true, 0);
    other.showEvent("900", 0);
  }
  assert.equal(scope.backends(0, 5000), []);
});

test("time in which the proxy's own loop stood still is not counted", () => {
  const scope = new Scope();
  scope.a.showEvent("5", 0);
  scope.lagging(0);
  scope.caches.discountStall(2000);
  assert.equal(scope.lagging(2000 + afterMs - 1), []);
  assert.is(scope.lagging(2000 + afterMs).length, 1);
});

test("a scope of a backend that is gone, or whose watches have left, does not lag", () => {
  for (const go of [({ caches }: Scope) => caches.forget("b"), ({ b }: Scope) => b.leave(true)]) {
    const scope = new Scope();
    scope.a.showEvent("5", 0);
    assert.equal(scope.backends(0, 1000), ["b"]);
    go(scope);
    assert.equal(scope.backends(1000, 1000), []);
  }
});

test("the marks of a scope that a cache lacks are apart and bounded", () => {
  const scope = new Scope();
  for (let at = 1; at <= 8 * watchLimits.cacheMarks; at += 1) {
    scope.a.showEvent(String(at + 1000), (at * watchLimits.lagMarkMs) / 4);
    scope.lagging((at * watchLimits.lagMarkMs) / 4);
  }
  const [suspicion] = scope.lagging(1_000_000);
  const { missing = [] } = suspicion ?? {};
  const gaps = missing.slice(1).map(({ at }, index) => at - (missing[index]?.at ?? 0));
  assert.is(missing.length, watchLimits.cacheMarks);
  assert.ok(gaps.slice(0, -1).every((gap) => gap === watchLimits.lagMarkMs));
});

test.run();
