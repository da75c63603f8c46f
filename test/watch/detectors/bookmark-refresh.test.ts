import { suite } from "uvu";
import * as assert from "uvu/assert";
import { sliceLimits } from "../../../src/base/slices.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import {
  BookmarkRefresher,
  type BookmarkRefresherParts,
} from "../../../src/watch/detectors/bookmark-refresh.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { countedClock } from "../../support/clock.ts";
import { bearer, PlayedPath } from "../../support/path.ts";
import { blackHole, goAway, json, linesOf, listOf, ok, PlayedWatch } from "../../support/watch-path.ts";

const test = suite("bookmark-refresh");

/** A watch whose other backend was down and came back with an empty event history, while etcd is at version 20. */
function returned(query = "resourceVersion=7&allowWatchBookmarks=true") {
  const watch = new PlayedWatch({
    path: new PlayedPath(["a", "b"], { alwaysRequestBookmarks: true }),
    query,
  });
  watch.serve(watch.from, "+8a");
  watch.kill(watch.to);
  watch.advance(1000);
  watch.to.isDown = false;
  watch.advance(1000);
  if (watch.from.asked.length > 1) watch.list(watch.from, "20");
  return watch;
}

test("a backend has come back: a watch elsewhere is asked for once more where it is, and can go there then", () => {
  const watch = returned();
  const list = watch.from.asked[1]?.request;
  assert.is(list?.path, "/api/v1/configmaps?limit=1", "etcd is asked for progress");
  assert.is(list?.fields.find(({ name }) => name === "authorization")?.value, "Bearer t");
  assert.is(watch.from.asked.length, 3);
  assert.is(watch.queryOf(watch.from), "resourceVersion=8&allowWatchBookmarks=true&timeoutSeconds=3");
  const refresh = watch.serve(watch.from, "=20");
  assert.is(refresh.resetCode, errorCode.CANCEL, "it has done what it was for");
  watch.has("+8a =20");
  watch.kill(watch.from);
  assert.match(watch.queryOf(watch.to), "resourceVersion=20&");
  watch.serve(watch.to, "~21a");
  watch.has("+8a =20 ~21a");
  assert.is(watch.path.migrations.refreshes, 1);
});

test("a client that did not ask for bookmarks sees nothing of it", () => {
  const watch = returned("resourceVersion=7");
  watch.serve(watch.from, "=20");
  watch.has("+8a");
  watch.kill(watch.from);
  assert.match(watch.queryOf(watch.to), "resourceVersion=20&allowWatchBookmarks=true&");
});

test("nor does one that began with a state, and it is not hung before its first bookmark", () => {
  const watch = returned("");
  const asked = watch.from.asked.map(({ request }) => request.path.replace(/.*[?]/, ""));
  const own = "watch=true&allowWatchBookmarks=true";
  assert.equal(asked, [own, "limit=1"], "it may still be in its initial events");
  const live = new PlayedWatch({
    path: new PlayedPath(["a", "b"], { alwaysRequestBookmarks: true }),
    query: "",
  });
  live.serve(live.from, "+8a ~9a");
  live.kill(live.to);
  live.advance(1000);
  live.to.isDown = false;
  live.advance(1000);
  live.list(live.from, "20");
  live.serve(live.from, "=20");
  live.advance(watchLimits.hungMs + watchLimits.hungLookMs);
  assert.equal([live.from.asked.length, live.to.asked.length], [3, 0], "silent, and not hung");
  live.has("+8a ~9a");
});

test("an event that only the new stream delivers is forwarded, and the first does not repeat it", () => {
  const watch = returned();
  watch.serve(watch.from, "~9a");
  watch.from.asked[0]?.say(linesOf("~9a"));
  watch.from.asked[0]?.say(linesOf("~10a"));
  watch.say(watch.from, "~10a =12");
  watch.has("+8a ~9a ~10a =12");
});

test("a watch that got something since is not asked for, nor one without bookmarks", () => {
  for (const [resource, alwaysRequestBookmarks] of [
    ["/api/v1/namespaces/n/events", true],
    ["/apis/metrics.k8s.io/v1beta1/pods", true],
    ["/api/v1/pods", false],
  ] as const) {
    const watch = new PlayedWatch({ path: new PlayedPath(["a", "b"], { alwaysRequestBookmarks }), resource });
    watch.serve(watch.from, "+8a");
    watch.kill(watch.to);
    watch.advance(1000);
    watch.to.isDown = false;
    watch.advance(2000);
    assert.is(watch.from.asked.length, 1, resource);
  }
  const watch = new PlayedWatch({ path: new PlayedPath(["a", "b"], { alwaysRequestBookmarks: true }) });
  watch.serve(watch.from, "+8a");
  const other = watch.client.ask("GET", "/api/v1/pods?watch=true&resourceVersion=7", [bearer("t")]);
  watch.path.settle();
  watch.serve(watch.from, "+8b");
  watch.advance(10);
  watch.path.refresher.returned(watch.to === watch.path.backend("a") ? "a" : "b");
  watch.say(watch.from, "~9b");
  watch.advance(1000);
  assert.is(watch.from.asked.length, 3);
  assert.match(watch.from.last.request.path, "configmaps");
  assert.is(other.body, linesOf("+8b ~9b"));
});

test("a second stream that ends in order, as those of a refresh do, is no end of a watch that is older than half an hour", () => {
  const watch = new PlayedWatch({ query: "resourceVersion=7&allowWatchBookmarks=true" });
  watch.serve(watch.from, "+8a");
  for (let ms = 0; ms < watchLimits.watchServerMs + 60_000; ms += 60_000) {
    watch.say(watch.from, `=${100 + ms}`);
    watch.advance(60_000);
  }
  watch.path.refresher.returned(watch.to === watch.path.backend("a") ? "a" : "b");
  watch.advance(1000);
  watch.list(watch.from, "9000000");
  assert.match(watch.queryOf(watch.from), "timeoutSeconds=3", "it is asked for once more");
  const asked = watch.from.asked.length;
  watch.serve(watch.from);
  watch.end(watch.from);
  watch.advance(watchLimits.resumeMs);
  watch.from.asked[0]?.say(linesOf("~9000000a"));
  watch.advance(100);
  assert.match(watch.ear.body, /"9000000"/);
  assert.equal([watch.ear.isEnded, watch.ear.resetCode], [false, undefined]);
  assert.is(watch.from.asked.length, asked + 1, "and its cache is looked at");
});

test("many are asked for one after the other", () => {
  const path = new PlayedPath(["a", "b"], { alwaysRequestBookmarks: true });
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  for (let count = 0; count < 39; count += 1)
    watch.client.ask("GET", "/api/v1/pods?watch=true&resourceVersion=7", [bearer("t")]);
  path.settle();
  for (const asked of watch.from.asked.slice(1)) asked.side?.sendHeaders(ok, false);
  path.settle();
  path.clock.advance(10);
  path.refresher.returned("b");
  path.clock.advance(3 * watchLimits.bookmarkRefreshPauseMs);
  const asked = (): number => watch.from.asked.length - 40;
  assert.is(asked(), 2, "a list of each resource");
  for (const list of watch.from.asked.slice(40)) list.answer(200, listOf("20"), [json]);
  path.settle();
  path.clock.advance(20 * watchLimits.bookmarkRefreshPauseMs);
  assert.ok(asked() >= 20 && asked() <= 23, String(asked()));
  path.clock.advance(40 * watchLimits.bookmarkRefreshPauseMs);
  assert.is(asked(), 42);
});

test("its backend falls meanwhile: it continues elsewhere, and not with the stream of the refresh", () => {
  const watch = returned();
  watch.serve(watch.from);
  watch.kill(watch.from);
  watch.advance(100);
  assert.match(watch.queryOf(watch.to), "resourceVersion=8&");
  assert.match(watch.queryOf(watch.to), /timeoutSeconds=359\d$/);
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
});

test("the first stream alone is lost: the watch is asked for anew, for all of its time", () => {
  const watch = returned();
  const first = watch.from.asked[0];
  const refresh = watch.serve(watch.from);
  first?.fail();
  watch.path.settle();
  assert.is(refresh.resetCode, errorCode.CANCEL);
  const asked = [...watch.from.asked.slice(3), ...watch.to.asked];
  assert.is(asked.length, 1);
  assert.match(asked[0]?.request.path ?? "", /timeoutSeconds=359\d$/);
});

/** A watch that begins to move to a third backend while the proxy asks its first backend for etcd's version. */
function migrating(query = "resourceVersion=7&allowWatchBookmarks=true") {
  const watch = new PlayedWatch({
    path: new PlayedPath(["a", "b", "c"], { alwaysRequestBookmarks: true }),
    query,
  });
  watch.serve(watch.from, "+8a");
  watch.kill(watch.to);
  watch.advance(1000);
  watch.to.isDown = false;
  watch.advance(1000);
  const third = [...watch.path.played.values()].find((one) => one !== watch.from && one !== watch.to);
  if (third === undefined) throw new Error("Three backends are played");
  goAway(watch.from);
  watch.advance(500);
  assert.match(watch.queryOf(third), /resourceVersion=8&.*timeoutSeconds=3598$/);
  return { watch, third };
}

test("the watch moves while etcd's version is asked for: it gets its bookmark where it goes", () => {
  const { watch, third } = migrating();
  watch.list(watch.from, "20");
  watch.serve(third);
  watch.from.asked[0]?.say("", true);
  watch.advance(watchLimits.bookmarkRefreshAgainMs + 100);
  watch.list(third, "20");
  assert.match(watch.queryOf(third), "resourceVersion=8&allowWatchBookmarks=true&timeoutSeconds=3");
  watch.serve(third, "=20");
  watch.kill(third);
  watch.advance(100);
  assert.match(watch.queryOf(watch.to), "resourceVersion=20&");
  watch.has("+8a =20");
});

test("a sentinel gets its bookmark, and then a second stream with the newer version", () => {
  const path = new PlayedPath(["a", "b", "c"], { alwaysRequestBookmarks: true, compares: "watches" });
  const watch = new PlayedWatch({ path, query: "resourceVersion=7&allowWatchBookmarks=true" });
  watch.serve(watch.from, "+8a");
  watch.advance(600);
  const second = [...path.played.values()].find((one) => one !== watch.from && one.asked.length > 0);
  if (second === undefined) throw new Error("A second stream is asked for");
  watch.serve(second);
  const [exchange] = path.exchanges.live;
  if (exchange?.watch !== undefined) path.refresher.refused(exchange.watch);
  watch.advance(10);
  watch.list(watch.from, "20");
  assert.match(watch.queryOf(watch.from), "resourceVersion=8&allowWatchBookmarks=true&timeoutSeconds=3");
  assert.is(second.last.resetCode, errorCode.CANCEL);
  watch.serve(watch.from, "=20");
  watch.advance(600);
  const posted = [...path.played.values()]
    .filter((one) => one !== watch.from)
    .map(({ asked }) => asked.at(-1));
  assert.ok(posted.some((asked) => asked?.request.path.includes("resourceVersion=20&")));
  watch.has("+8a =20");
});

test("a watch that gets an event where it goes is not asked for there", () => {
  const { watch, third } = migrating();
  watch.list(watch.from, "20");
  watch.serve(third, "~21a");
  const asked = third.asked.length;
  watch.advance(watchLimits.caughtUpMs);
  assert.is(third.asked.length, asked);
});

test("a refresh that finds no room is given up when the backend's own bookmark is due, or its client has gone", () => {
  for (const leaves of [true, false]) {
    const { watch } = migrating();
    // The third backend never answers the move, so the watch has two streams and cannot be refreshed.
    watch.list(watch.from, "20");
    const { refresher } = watch.path;
    assert.is(refresher.postponed, 1);
    if (leaves) watch.ear.stream.reset(errorCode.CANCEL);
    watch.advance(leaves ? watchLimits.bookmarkRefreshAgainMs : watchLimits.caughtUpMs);
    assert.is(refresher.postponed, 0);
  }
});

test("its backend drains meanwhile: the watch moves when it has its bookmark", () => {
  const watch = returned();
  const refresh = watch.serve(watch.from);
  assert.match(refresh.request.path, "timeoutSeconds=3");
  goAway(watch.from);
  watch.path.settle();
  watch.advance(1000);
  assert.is(refresh.resetCode, undefined);
  refresh.say(linesOf("=20"));
  watch.advance(watchLimits.declinedMs);
  const moved = [...watch.from.asked, ...watch.to.asked].filter(({ request }) =>
    request.path.includes("watch=true&resourceVersion=20&"),
  );
  assert.is(moved.length, 1);
  watch.has("+8a =20");
});

test("while its backend shuts down and takes no new connection, the bookmark waits, and does not dial in vain", () => {
  const path = new PlayedPath(["a", "b"], { alwaysRequestBookmarks: true });
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  for (let count = 0; count < 39; count += 1)
    watch.client.ask("GET", "/api/v1/configmaps?watch=true&resourceVersion=7", [bearer("t")]);
  path.settle();
  for (const asked of watch.from.asked.slice(1)) asked.side?.sendHeaders(ok, false);
  watch.kill(watch.to);
  watch.advance(1000);
  watch.to.isDown = false;
  watch.advance(1000);
  watch.from.isDown = true;
  goAway(watch.from);
  path.settle();
  watch.advance(100);
  const dials = watch.from.dialCount;
  watch.list(watch.from, "20");
  watch.advance(1000);
  assert.ok(watch.from.dialCount - dials <= 8, String(watch.from.dialCount - dials));
});

test("its backend falls silent meanwhile: a hedge is more urgent", () => {
  const watch = returned();
  watch.serve(watch.from);
  blackHole(watch.from);
  watch.advance(1500);
  assert.is(watch.to.asked.length, 1);
  watch.serve(watch.to, "~9a");
  watch.has("+8a ~9a");
});

test("no bookmark comes: after its time nothing is left of it", () => {
  const watch = returned();
  watch.serve(watch.from);
  watch.end(watch.from);
  watch.from.asked[0]?.say(linesOf("~9a"));
  watch.path.settle();
  watch.has("+8a ~9a");
  assert.is(watch.from.asked.length, 3);
});

test("a cache that lists anew shows by its refusal: watches of that resource elsewhere are asked for, if they are older", () => {
  const path = new PlayedPath(["a", "b"], { alwaysRequestBookmarks: true });
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  const ask = (resource: string, version: number): void => {
    watch.client.ask("GET", `/api/v1/${resource}?watch=true&resourceVersion=${version}`, [bearer("t")]);
    path.settle();
    watch.serve(watch.from);
  };
  ask("configmaps", 20);
  ask("pods", 5);
  assert.is(watch.from.asked.length, 3);
  // Backend b refuses another client's watch, because it has no history before version 15.
  const other = new PlayedWatch({ path, client: path.client(), query: "resourceVersion=9" });
  const message = "too old resource version: 9 (15)";
  assert.is(other.from, watch.to);
  other.serve(other.from);
  other.from.last.say(`{"type":"ERROR","object":{"kind":"Status","code":410,"message":"${message}"}}\n`);
  path.settle();
  const before = watch.from.asked.length;
  path.clock.advance(watchLimits.stallLookMs + 100);
  assert.is(watch.from.asked.length, before + 1);
  watch.list(watch.from, "20");
  assert.is(watch.from.asked.length, before + 2);
  assert.match(watch.queryOf(watch.from), "resourceVersion=8&allowWatchBookmarks=true&timeoutSeconds=3");
});

test("a client whose time is nearly over is left alone", () => {
  const watch = returned("resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=4");
  assert.is(watch.from.asked.length, 1);
});

for (const [what, resource, query, count] of [
  ["a watch that has bookmarks is asked for one", "/api/v1/configmaps", "&allowWatchBookmarks=true", 1],
  ["a watch of Events has none, and is not", "/api/v1/events", "", 0],
  ["a watch that is about to end is not", "/api/v1/configmaps", "&timeoutSeconds=2", 0],
] as const) {
  test(`when its next backend has forgotten its version, ${what}`, () => {
    const watch = new PlayedWatch({ resource, query: `resourceVersion=7${query}` });
    watch.serve(watch.from, "+8a ~9a");
    const [exchange] = watch.path.exchanges.live;
    if (exchange?.watch !== undefined) watch.path.refresher.refused(exchange.watch);
    watch.advance(10);
    if (count > 0) watch.list(watch.from, "20");
    assert.is(watch.path.migrations.refreshes, count);
  });
}

test("each of 50,000 watches elsewhere is looked at once, and no loop turn is for all of them", () => {
  const clock = countedClock();
  let count = 0;
  const perTurn = new Map<number, number>();
  const live = Array.from({ length: 50_000 }, (_, index) => {
    return {
      isEnded: false,
      watch: {
        attempt: { backend: index % 2 === 0 ? "a" : "b" },
        mayHedge: true,
        get progress() {
          count += 1;
          perTurn.set(clock.turns, (perTurn.get(clock.turns) ?? 0) + 1);
          return { lastChangeAt: 1e9 };
        },
      },
    };
  });
  const refresher = new BookmarkRefresher({
    clock,
    exchanges: { live },
  } as unknown as BookmarkRefresherParts);
  refresher.returned("b");
  clock.advance(1000);
  assert.is(count, 25_000);
  assert.ok(Math.max(...perTurn.values()) <= sliceLimits.sliceEntries, String(Math.max(...perTurn.values())));
});

test.run();
