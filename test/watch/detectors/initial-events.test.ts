import { suite } from "uvu";
import * as assert from "uvu/assert";
import { watchLimits } from "../../../src/watch/cache/limits.ts";
import { PlayedPath } from "../../support/path.ts";
import { PlayedWatch } from "../../support/watch-path.ts";

const test = suite("watch/detectors/initial-events");

/** Returns how many lists the backend of an accepted watch was asked for. */
function listsOf(query: string, resource?: string): number {
  const watch = new PlayedWatch({ query, ...(resource === undefined ? {} : { resource }) });
  watch.serve(watch.from);
  return watch.from.asked.filter(({ request }) => request.path.endsWith("limit=1")).length;
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

test("events are in no watch cache, so a list is no bound for them", () => {
  assert.is(listsOf("", "/api/v1/events"), 0);
});

test("beyond its budget a watch gets no list, and later ones do again", () => {
  const path = new PlayedPath(["a", "b"]);
  const lists = (): number =>
    [...path.played.values()]
      .flatMap(({ asked }) => asked)
      .filter(({ request }) => request.path.endsWith("limit=1")).length;
  const open = (): void => {
    const watch = new PlayedWatch({ path, query: "" });
    watch.serve(watch.from);
  };
  for (let at = 0; at < watchLimits.initialListBurst + 5; at += 1) open();
  assert.is(lists(), watchLimits.initialListBurst);
  path.clock.advance(1000);
  open();
  assert.is(lists(), watchLimits.initialListBurst + 1);
});

test.run();
