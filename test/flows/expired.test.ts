/**
 * A cache has forgotten the version of a watch. Tests which other backends the proxy tries or waits for, and when the
 * client gets the 410 (row 17).
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { watchLimits } from "../../src/watch/limits.ts";
import { PlayedPath } from "../support/path.ts";
import { blackHole, PlayedWatch } from "../support/watch-path.ts";

const test = suite("flows/expired");

const probed = (): PlayedPath => {
  const path = new PlayedPath(["a", "b"], { isProbed: true });
  path.clock.advance(1000);
  return path;
};

test("a client's own version that one cache has forgotten and another has not: it never knows", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "!410");
  watch.end(watch.from);
  watch.has("");
  assert.match(watch.queryOf(watch.to), "resourceVersion=7&");
  watch.serve(watch.to, "+8a");
  watch.has("+8a");
  assert.is(watch.ear.heads.length, 1, "no second head");
  assert.is(watch.path.migrations.moves.get("expired"), 1);
});

test("one that all have forgotten: it is told at once, in the words of the first", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "!410");
  watch.serve(watch.to, "!410");
  watch.has("!410", "ended");
  assert.is(watch.path.migrations.ends.size, 0, "no watch ended by the proxy");
});

test("the refusal comes in two pieces, and goes on whole", () => {
  const watch = new PlayedWatch();
  const line = '{"type":"ERROR","object":{"kind":"Status","metadata":{},"code":410}}\n';
  watch.serve(watch.from);
  watch.from.last.say(line.slice(0, 40));
  watch.path.settle();
  watch.from.last.say(line.slice(40));
  watch.path.settle();
  watch.serve(watch.to, "!410");
  watch.has("!410", "ended");
});

test("of events only etcd knows, and all backends ask that: it is told at once", () => {
  const watch = new PlayedWatch({ resource: "/api/v1/namespaces/n/events" });
  watch.serve(watch.from, "!410");
  watch.end(watch.from);
  watch.has("!410", "ended");
  assert.is(watch.to.asked.length, 0);
});

test("a backend that has refused a version is asked for no older one, for any client, while another may know it", () => {
  const path = new PlayedPath(["a", "b"]);
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "!410");
  watch.serve(watch.to, "+8a");
  const older = new PlayedWatch({ path, client: path.client(), query: "resourceVersion=6" });
  assert.is(older.from, watch.to);
  older.serve(older.from, "+7b");
  // The other backend is known to have forgotten the version, so the proxy does not even try it.
  older.kill(older.from);
  older.has("+7b", "ended");
  assert.is(watch.from.asked.length, 2, "for the one at 8, and not for the one at 7");
  assert.match(watch.queryOf(watch.from), "resourceVersion=8&");
  assert.is(path.migrations.ends.get("expired"), 1);
});

test("the other is only out of reach: it is waited for, and goes on", () => {
  const path = probed();
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  blackHole(watch.from);
  watch.advance(1000);
  watch.serve(watch.to, "!410");
  watch.advance(8000);
  watch.has("+8a");
  assert.is(watch.to.asked.length, 1, "the version is not asked for again");
  watch.from.isMute = false;
  watch.advance(3000);
  assert.is(watch.from.asked.length, 2);
  watch.serve(watch.from, "~9a");
  watch.has("+8a ~9a");
});

test("for fifteen seconds, and not longer", () => {
  const path = probed();
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  blackHole(watch.from);
  watch.advance(1000);
  watch.serve(watch.to, "!410");
  watch.advance(watchLimits.resumeMs);
  watch.has("+8a");
  watch.advance(5000);
  watch.has("+8a", "ended");
  assert.is(path.migrations.ends.get("expired"), 1);
});

test("its process is gone, and its cache: it is not waited for", () => {
  const path = probed();
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  watch.kill(watch.from);
  watch.advance(50);
  watch.serve(watch.to, "!410");
  watch.advance(2 * watchLimits.parkedMs);
  watch.has("+8a", "ended");
  const [end] = watch.entries("watches.ended");
  watch.advance(watchLimits.logMs);
  assert.is(end, undefined, "told with the wave");
  assert.match(JSON.stringify(watch.entries("watches.ended")), '"resource":"/configmaps","version":"8"');
});

test("a hedge that is refused is asked for again when the version is newer, and not before", () => {
  const path = probed();
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  watch.from.readyz = "hanging";
  watch.advance(8000);
  assert.is(watch.to.asked.length, 1, "suspect");
  watch.serve(watch.to, "!410");
  watch.advance(2 * watchLimits.declinedMs);
  assert.is(watch.to.asked.length, 1);
  watch.from.asked[0]?.say('{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"9"}}}\n');
  watch.advance(2 * watchLimits.declinedMs);
  assert.match(watch.queryOf(watch.to), "resourceVersion=9&");
});

test("a refusal that another backend has overtaken is never told: an hour later, when the proxy drains, the watch just ends", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "!410");
  watch.end(watch.from);
  watch.serve(watch.to, "+8a ~9a");
  watch.advance(3_600_000);
  for (const exchange of watch.path.exchanges.live) exchange.letWatchEnd();
  watch.advance(2_000);
  watch.has("+8a ~9a", "ended");
});

test.run();
