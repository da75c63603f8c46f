import { suite } from "uvu";
import * as assert from "uvu/assert";
import { watchLimits } from "../../../src/watch/limits.ts";
import { PlayedPath } from "../../support/path.ts";
import { linesOf, PlayedWatch } from "../../support/watch-path.ts";

const test = suite("watch/detectors/initial-events");

/** Returns how many lists the proxy sends to the backend after the watch's first event, an ADDED. */
function listsOf(query: string, resource?: string): number {
  const watch = new PlayedWatch({ query, ...(resource === undefined ? {} : { resource }) });
  const lists = (): number =>
    watch.from.asked.filter(({ request }) => request.path.endsWith("limit=1")).length;
  watch.serve(watch.from);
  assert.is(lists(), 0, "before the first event, the apiserver may not have read the state yet");
  watch.serve(watch.from, "+9a", []);
  return lists();
}

test("only a watch that begins with the state, and is told nothing of its end, needs a list", () => {
  for (const [query, lists] of [
    ["", 1],
    ["resourceVersion=0", 1],
    ["allowWatchBookmarks=true", 1],
    ["resourceVersion=7", 0],
    ["sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", 0],
    ["sendInitialEvents=false&resourceVersionMatch=NotOlderThan", 0],
  ] as const)
    assert.is(listsOf(query), lists, query);
});

test("a list bounds the initial events of resources that no watch cache serves, too", () => {
  assert.is(listsOf("", "/api/v1/events"), 1);
});

test("a stream has one list", () => {
  const watch = new PlayedWatch({ query: "" });
  watch.serve(watch.from, "+9a");
  const { length } = watch.from.asked;
  watch.from.asked[0]?.say(linesOf("+10b"));
  watch.path.settle();
  assert.is(watch.from.asked.length, length);
});

test("beyond its budget a watch gets no list, and later ones do again", () => {
  const path = new PlayedPath(["a", "b"]);
  const lists = (): number =>
    [...path.played.values()]
      .flatMap(({ asked }) => asked)
      .filter(({ request }) => request.path.endsWith("limit=1")).length;
  const open = (): void => {
    const watch = new PlayedWatch({ path, query: "" });
    watch.serve(watch.from, "+9a");
  };
  for (let at = 0; at < watchLimits.initialListBurst + 5; at += 1) open();
  assert.is(lists(), watchLimits.initialListBurst);
  path.clock.advance(1000);
  open();
  assert.is(lists(), watchLimits.initialListBurst + 1);
});

test.run();
