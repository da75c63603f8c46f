import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { WatchEvent } from "../../../src/watch/codec/event.ts";
import { acceptanceOfError, isHeldBack } from "../../../src/watch/session/expired-version.ts";

const test = suite("watch/session/expired-version");

test("after a 410 the version is requested from other backends, until no backend is left that may have it (row 17)", () => {
  assert.is(acceptanceOfError(410, false).kind, "elsewhere");
  assert.is(acceptanceOfError(410, true).kind, "end");
  for (const code of [500, 504, 429, 0]) assert.is(acceptanceOfError(code, true).kind, "elsewhere");
  for (const code of [401, 403]) assert.is(acceptanceOfError(code, false).kind, "end");
});

test("a 410 to the client's own request is held back only if another backend's cache may have the version (row 17)", () => {
  const error = (code: number): WatchEvent => ({
    type: "ERROR",
    version: "",
    endsInitialEvents: false,
    code,
    reason: "Expired",
    oldest: "",
    key: "",
  });
  const ofCaches = { isExact: true, isForeign: false, isRepeating: false };
  assert.ok(isHeldBack(error(410), ofCaches));
  assert.not(isHeldBack(error(500), ofCaches));
  assert.not(isHeldBack(error(410), { ...ofCaches, isExact: false }), "a watch from the state or from now");
  assert.not(isHeldBack(error(410), { ...ofCaches, isForeign: true }), "an aggregated server's versions");
  assert.not(isHeldBack(error(410), { ...ofCaches, isRepeating: true }), "events, which come from etcd");
});

test.run();
