import { suite } from "uvu";
import * as assert from "uvu/assert";
import { CacheTracker } from "../../../src/watch/cache/cache-progress.ts";
import { watchLimits } from "../../../src/watch/limits.ts";

const test = suite("watch/cache/write-delays");

const opened = watchLimits.sightMs;

test("groups beyond the limit share a histogram", () => {
  const { writeDelays } = new CacheTracker();
  for (let index = 0; index < 2 * watchLimits.delayGroups; index += 1) writeDelays.of("a", `g${index}/x`);
  const groups = [...(writeDelays.histograms.get("a")?.keys() ?? [])];
  assert.is(groups.length, watchLimits.delayGroups + 1);
  assert.is(groups.at(-1), "other");
});

test("beyond the limit of resources only watched ones are measured", () => {
  const caches = new CacheTracker();
  const { writeDelays } = caches;
  for (let index = 0; index < watchLimits.comparedResources; index += 1)
    writeDelays.of("a", `/r${index}`)?.begin(0);
  assert.is(writeDelays.of("a", "/more"), undefined);
  for (const progress of writeDelays.writesTo("/r7")?.all ?? []) progress.stop();
  assert.is.not(writeDelays.of("a", "/more"), undefined);
  assert.is([...writeDelays.all].length, watchLimits.comparedResources);
});

test("a removed backend is forgotten, with its histograms", () => {
  const caches = new CacheTracker();
  caches.ofScope("a", "/pods ").join(true, 0);
  caches.ofScope("b", "/pods ").join(true, 0);
  caches.reconcile(["b"]);
  const { writeDelays } = caches;
  assert.equal([writeDelays.lagMs("a", 10), writeDelays.lagMs("b", 10)], [undefined, 0]);
  assert.equal([...writeDelays.histograms.keys()], ["b"]);
});

test("a watch that begins with a newer version delivers no older write", () => {
  const caches = new CacheTracker();
  const a = caches.ofScope("a", "/pods ");
  a.join(true, 0, "20");
  caches.writeDelays.writesTo("/pods")?.wrote("15", "", opened);
  assert.is(caches.writeDelays.lagMs("a", opened + 10), 0);
});

test("a write after the last watch has left is not missed, nor when one comes back", () => {
  const caches = new CacheTracker();
  const a = caches.ofScope("a", "/pods ");
  a.join(true, 0);
  const writes = caches.writeDelays.writesTo("/pods");
  writes?.wrote("15", "", opened);
  a.leave(true);
  writes?.wrote("16", "", opened + 1);
  a.join(true, opened + 2);
  writes?.wrote("17", "", opened + 3);
  assert.is(caches.writeDelays.lagMs("a", opened + 1000), 0);
  writes?.wrote("18", "", 3 * opened);
  assert.is(caches.writeDelays.lagMs("a", 3 * opened + 5), 5);
});

test.run();
