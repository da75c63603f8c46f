import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { type PlayedBackend, PlayedPath } from "../../support/path.ts";
import { linesOf, ok, PlayedWatch, type WatchOptions } from "../../support/watch-path.ts";

/** Both backends answer PINGs and requests, but the watch cache of one lags. */
const test = suite("watch/detectors/lagging-cache");

const suspectMs = 500;
/**
 * The time until a lag is detected. The detector notices the event at one check, and the expired limit at a later
 * check.
 */
const seenMs = suspectMs + 2 * watchLimits.lagLookMs;

type Pair = {
  readonly path: PlayedPath;
  readonly late: PlayedWatch;
  /** Sends these events to the watch at the backend that does not lag. */
  readonly show: (words: string) => void;
};

function pair(lateOptions: WatchOptions = {}, resource = "/api/v1/configmaps"): Pair {
  const path = new PlayedPath(["a", "b"]);
  const going = new PlayedWatch({ path, resource });
  const own = going.serve(going.from);
  const late = new PlayedWatch({ ...lateOptions, path });
  late.serve(late.from);
  path.clock.advance(3000);
  const show = (words: string): void => {
    own.say(linesOf(words));
    path.settle();
  };
  return { path, late, show };
}

function served(backend: PlayedBackend): void {
  backend.last.side?.sendHeaders(ok, false);
}

test("what one backend has not delivered in half a second the other is asked for, and whichever delivers it first is forwarded", () => {
  const { path, late, show } = pair();
  show("+8a");
  path.clock.advance(suspectMs - watchLimits.lagLookMs);
  assert.is(late.to.asked.length, 1);
  path.clock.advance(3 * watchLimits.lagLookMs);
  assert.is(late.to.asked.length, 2);
  assert.match(late.queryOf(late.to), /^resourceVersion=7&/);
  served(late.to);
  late.say(late.to, "+8a");
  late.has("+8a");
  assert.is(late.from.asked.at(-1)?.resetCode, undefined, "it is served as before");
});

test("when it comes on the other is let go, and nothing was lost or told twice", () => {
  const { path, late, show } = pair();
  show("+8a");
  path.clock.advance(seenMs);
  served(late.to);
  late.say(late.to, "+8a");
  const { last } = late.to;
  late.say(late.from, "+8a ~9a");
  path.clock.advance(watchLimits.lagLookMs);
  assert.is.not(last.resetCode, undefined);
  late.say(late.from, "~10a");
  late.has("+8a ~9a ~10a");
});

test("one that was late for a moment is let alone for a while", () => {
  const { path, late, show } = pair();
  const asked = (): number => late.to.asked.length;
  show("+8a");
  path.clock.advance(seenMs);
  served(late.to);
  late.say(late.from, "+8a");
  path.clock.advance(watchLimits.lagLookMs);
  const before = asked();
  show("~9a");
  path.clock.advance(4000);
  assert.is(asked(), before);
  late.say(late.from, "~9a");
  path.clock.advance(watchLimits.lagPauseMs);
  show("~10a");
  path.clock.advance(seenMs);
  assert.is(asked(), before + 1);
});

test("a watch that sees a part of the resource only need not show it (D7)", () => {
  const { path, late, show } = pair({ query: "resourceVersion=7&labelSelector=a" });
  show("+8a");
  path.clock.advance(limits.behindMs);
  assert.is(late.to.asked.length, 1);
});

test("watches of one namespace tell of it, and of no other; those with a selector there have company as well", () => {
  const inX = "/api/v1/namespaces/x/configmaps";
  const other = pair({ resource: "/api/v1/namespaces/y/configmaps" }, inX);
  other.show("+8a");
  other.path.clock.advance(limits.behindMs);
  assert.is(other.late.to.asked.length, 1);
  const { path, late, show } = pair({ resource: inX }, inX);
  const selecting = new PlayedWatch({
    path,
    resource: inX,
    client: late.client,
    query: "resourceVersion=7&labelSelector=a",
  });
  assert.is(selecting.from, late.from);
  selecting.serve(selecting.from);
  show("+8a");
  path.clock.advance(seenMs);
  assert.is(late.to.asked.length, 3);
});

test("nor one that was opened when the event came: its first state may have had it", () => {
  const path = new PlayedPath(["a", "b"]);
  const going = new PlayedWatch({ path });
  going.serve(going.from);
  const late = new PlayedWatch({ path });
  late.serve(late.from);
  path.clock.advance(watchLimits.sightMs / 2);
  going.say(going.from, "+8a");
  path.clock.advance(4000);
  assert.is(late.to.asked.length, 1);
});

test("nor one that is told its state still, however long that takes", () => {
  const { path, late, show } = pair({
    query: "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
  });
  late.say(late.from, "+3b");
  const query = "resourceVersion=7&labelSelector=a";
  const selecting = new PlayedWatch({ path, client: late.client, query });
  assert.is(selecting.from, late.from);
  selecting.serve(selecting.from);
  show("+8a");
  path.clock.advance(4000);
  assert.is(late.to.asked.length, 1, "no watch there has a second stream");
});

test("a stall of the proxy's own loop is held against no backend (F11)", () => {
  const { path, late, show } = pair();
  path.clock.advance(watchLimits.lagLookMs);
  show("+8a");
  path.clock.advance(watchLimits.lagLookMs);
  path.clock.stall(3000);
  path.clock.advance(watchLimits.lagLookMs);
  assert.is(late.to.asked.length, 1);
});

test.run();
