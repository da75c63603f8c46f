import { suite } from "uvu";
import * as assert from "uvu/assert";
import { watchRequestOf } from "../../src/kube/watch-request.ts";

const test = suite("kube/watch-request");

test("where a watch starts is read as the apiserver reads it (watch.md §1.3)", () => {
  const starts = {
    "": "state",
    "resourceVersion=": "state",
    "resourceVersion=0": "state",
    "resourceVersion=00": "state",
    "resourceVersion=7": "exact 7",
    "resourceVersion=007": "exact 7",
    "resourceVersion=7&resourceVersion=8": "exact 7",
    "resourceVersion=7&sendInitialEvents=false": "exact 7",
    "resourceVersion=7&sendInitialEvents=true&resourceVersionMatch=NotOlderThan": "state",
    "sendInitialEvents=true": "state",
    sendInitialEvents: "state",
    "sendInitialEvents=false": "now",
    "sendInitialEvents=FALSE&resourceVersion=0": "now",
    "resourceVersion=0&sendInitialEvents=0": "now",
    "resource%56ersion=12": "exact 12",
    "resourceVersion=%zz&resourceVersion=12": "exact 12",
    "ResourceVersion=7": "state",
    "resourceVersion=x": "state",
  };
  for (const [query, expected] of Object.entries(starts)) {
    const { start, version } = watchRequestOf(`/api/v1/pods?watch=1&${query}`);
    assert.is(`${start} ${version}`.trim(), expected, query);
  }
});

test("a watch without a query asks for the state", () => {
  assert.equal(watchRequestOf("/api/v1/watch/pods"), {
    start: "state",
    version: "",
    hasBookmarks: false,
    awaitsMarker: false,
    timeoutMs: undefined,
    isUncommon: false,
  });
});

test("a client that asked for the state and for bookmarks waits for a marker", () => {
  const awaits = (query: string): boolean => watchRequestOf(`/x?watch=1&${query}`).awaitsMarker;
  assert.ok(awaits("sendInitialEvents=true&allowWatchBookmarks=true"));
  assert.not(awaits("sendInitialEvents=true"));
  assert.not(awaits("allowWatchBookmarks=true"));
  assert.not(awaits("sendInitialEvents=false&allowWatchBookmarks=true"));
});

test("bookmarks are asked for by any value but 0 and false", () => {
  for (const value of ["=true", "=1", "=TRUE", "=no", "=", ""])
    assert.ok(watchRequestOf(`/x?allowWatchBookmarks${value}`).hasBookmarks, value);
  for (const value of ["=0", "=false", "=False"])
    assert.not(watchRequestOf(`/x?allowWatchBookmarks${value}`).hasBookmarks, value);
});

test("a timeout of 0, none, and what is no number leave the end to the server", () => {
  const timeouts = { "9": 9000, "0": undefined, "-1": -1000, "": undefined, x: undefined, "1.5": undefined };
  for (const [value, ms] of Object.entries(timeouts))
    assert.is(watchRequestOf(`/x?timeoutSeconds=${value}`).timeoutMs, ms, value);
  assert.is(watchRequestOf("/x").timeoutMs, undefined);
});

test.run();
