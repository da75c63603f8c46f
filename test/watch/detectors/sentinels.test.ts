import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { type Asked, bearer, type PlayedBackend, PlayedPath } from "../../support/path.ts";
import { goAway, lineOf, linesOf, ok, PlayedWatch, type WatchOptions } from "../../support/watch-path.ts";

/**
 * While two backends are ready, one watch of each resource has a second stream at another backend (D13). It is the
 * sentinel.
 */
const test = suite("watch/detectors/sentinels");

const establishedMs = 2000;
const bookmarks = "resourceVersion=7&allowWatchBookmarks=true";

function twoBackends(): PlayedPath {
  return new PlayedPath(["a", "b"], { compares: "watches" });
}

/** A watch that is the sentinel of its resource. The other backend has accepted its second stream. */
function posted(options: WatchOptions = {}): { watch: PlayedWatch; first: Asked; second: Asked } {
  const watch = new PlayedWatch({ path: twoBackends(), query: bookmarks, ...options });
  const first = watch.serve(watch.from, "=8");
  watch.advance(establishedMs);
  const second = watch.serve(watch.to);
  watch.advance(watchLimits.sentinelLookMs);
  return { watch, first, second };
}

function say(watch: PlayedWatch, asked: Asked, words: string): void {
  asked.say(linesOf(words));
  watch.path.settle();
}

test("a watch is asked for at a second backend within two seconds, from where it is", () => {
  const { watch } = posted();
  assert.is(watch.to.asked.length, 1);
  assert.match(watch.queryOf(watch.to), /^resourceVersion=8&allowWatchBookmarks=true&timeoutSeconds=\d+$/);
  assert.equal(
    watch.path.detectors.sentinels.all.map(({ resource, backend }) => [resource, backend]),
    [["/configmaps", "b"]],
  );
  watch.advance(60_000);
  assert.equal([watch.from.asked.length, watch.to.asked.length], [1, 1], "and that is all");
});

test("what both show goes on once, whichever is first", () => {
  const { watch, first, second } = posted();
  say(watch, second, "+9a ~10a =11");
  watch.has("=8");
  say(watch, first, "+9a");
  watch.has("=8 +9a");
  say(watch, first, "~10a -12b");
  say(watch, second, "-12b =13");
  watch.has("=8 +9a ~10a -12b");
  say(watch, first, "=14");
  watch.has("=8 +9a ~10a -12b =14");
});

test("when the first is lost the second is the watch at once, with all that it has shown", () => {
  const { watch, second } = posted();
  say(watch, second, "+9a ~10a");
  const before = watch.to.asked.length;
  watch.kill(watch.from);
  watch.has("=8 +9a ~10a");
  assert.is(watch.to.asked.length, before, "no backend was asked for it");
  say(watch, second, "~11a");
  watch.has("=8 +9a ~10a ~11a");
  watch.advance(watchLimits.logMs);
  const [moved] = watch.entries("watches.moved");
  assert.equal([moved?.reason, moved?.from, moved?.to, moved?.slowestMs], ["lost", "a", "b", 0]);
});

test("a second that has not answered when the first is lost is waited for like any other, and asked elsewhere if it stays silent", () => {
  const watch = new PlayedWatch({ path: twoBackends(), query: bookmarks });
  watch.serve(watch.from, "=8");
  watch.advance(establishedMs);
  assert.is(watch.to.asked.length, 1);
  watch.from.last.side?.reset(errorCode.INTERNAL_ERROR);
  watch.advance(watchLimits.resumeAnswerMs - 100);
  for (let ms = 0; ms < 2 * watchLimits.resumeAnswerMs && watch.from.asked.length < 2; ms += 100)
    watch.advance(100);
  assert.is(watch.from.asked.length, 2, "asked where it was before");
  watch.serve(watch.from, "+9a");
  watch.has("=8 +9a");
});

test("half an event of the second is whole when it is the watch", () => {
  const { watch, second } = posted();
  const line = lineOf("+9a");
  second.say(line.slice(0, 20));
  watch.path.settle();
  watch.kill(watch.from);
  second.say(line.slice(20));
  watch.path.settle();
  watch.has("=8 +9a");
});

test("a first that is silent has its hedge there, and a false alarm leaves the sentinel where it is", () => {
  const { watch, first, second } = posted();
  const held = watch.from.sessions.map(({ cable }) => cable.hold());
  say(watch, second, "+9a");
  watch.has("=8");
  watch.advance(800);
  watch.has("=8 +9a");
  say(watch, second, "~10a");
  watch.has("=8 +9a ~10a");
  for (const go of held) go();
  watch.advance(1500);
  say(watch, first, "+9a ~10a ~11a");
  watch.advance(2 * watchLimits.lagLookMs);
  say(watch, second, "~11a ~12a");
  watch.has("=8 +9a ~10a ~11a");
  assert.is(watch.to.asked.length, 1, "it was asked once, and never dropped");
  assert.is(second.resetCode, undefined);
  assert.is(watch.path.detectors.sentinels.count, 1);
});

test("a watch that is moved on purpose goes on where its sentinel is", () => {
  const { watch, second } = posted();
  watch.advance(watchLimits.settledMs);
  goAway(watch.from);
  watch.advance(1000);
  say(watch, second, "+9a");
  watch.has("=8 +9a");
  assert.is(watch.path.migrations.moves.get("draining"), 1);
});

test("there is one for each resource, and a watch that sees all of it is preferred", () => {
  const path = twoBackends();
  const part = new PlayedWatch({ path, query: `${bookmarks}&labelSelector=a` });
  part.serve(part.from, "=8");
  path.clock.advance(establishedMs);
  part.serve(part.to);
  path.clock.advance(watchLimits.sentinelLookMs);
  assert.is(path.detectors.sentinels.all[0]?.watch.asked.version, "7");
  const whole = new PlayedWatch({ path, query: "resourceVersion=8" });
  whole.serve(whole.from);
  const pods = new PlayedWatch({ path, resource: "/api/v1/pods" });
  pods.serve(pods.from);
  for (const backend of path.played.values()) backend.asked.length = 0;
  path.clock.advance(establishedMs);
  const asked = Array.from(path.played.values()).flatMap((backend) => backend.asked);
  for (const one of asked) one.side?.sendHeaders(ok, false);
  path.clock.advance(establishedMs);
  assert.is(asked.length, 2);
  assert.is(path.detectors.sentinels.count, 2);
  assert.ok(path.detectors.sentinels.all.every(({ watch }) => ["8", "7"].includes(watch.asked.version)));
  assert.is(asked.filter(({ request }) => request.path.includes("labelSelector")).length, 0);
});

test("with one backend there is none, and the next one has it within two seconds", () => {
  const path = new PlayedPath(["a", "b"], { compares: "watches", down: ["b"] });
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a");
  path.clock.advance(5000);
  const backend = path.backend("b");
  assert.is(backend.asked.length, 0);
  assert.is(path.detectors.sentinels.count, 0);
  backend.isDown = false;
  for (let ms = 0; path.backends.views.some(({ state }) => state !== "ready"); ms += 100) {
    assert.ok(ms < 60_000);
    // A client's request makes the proxy connect to the backend.
    if (ms % 5000 === 0) path.client().ask("GET", "/api/v1/pods");
    path.clock.advance(100);
  }
  path.clock.advance(establishedMs);
  assert.ok(backend.asked.some(({ request }) => request.path.includes("watch=true")));
});

test("when its client ends the watch another one of the resource takes over", () => {
  const { watch } = posted();
  const { path } = watch;
  const next = new PlayedWatch({ path, query: bookmarks, client: watch.client });
  next.serve(next.from, "=9");
  path.clock.advance(establishedMs);
  watch.ear.stream.reset(8);
  path.settle();
  assert.is(path.detectors.sentinels.count, 0);
  for (const backend of path.played.values()) backend.asked.length = 0;
  path.clock.advance(establishedMs);
  for (const { asked } of path.played.values()) for (const one of asked) one.side?.sendHeaders(ok, false);
  path.settle();
  assert.is(path.detectors.sentinels.count, 1);
});

test("a watch whose token has expired keeps its second stream, and is not asked for anew", () => {
  const exp = 1;
  const token = `x.${Buffer.from(JSON.stringify({ exp })).toString("base64url")}.x`;
  const watch = new PlayedWatch({ path: twoBackends(), query: bookmarks, fields: [bearer(token)] });
  watch.serve(watch.from, "=8");
  watch.advance(10_000);
  assert.is(watch.to.asked.length, 0);
});

test("a cache that is being filled is asked again a second later, and slows down no other watch's moves", () => {
  const watch = new PlayedWatch({ path: twoBackends(), query: bookmarks });
  watch.serve(watch.from, "=8");
  watch.advance(establishedMs);
  const json = new Field("content-type", "application/json");
  watch.to.last.answer(429, '{"kind":"Status","code":429}', [json, new Field("retry-after", "1")]);
  watch.path.settle();
  watch.advance(2 * watchLimits.sentinelPauseMs);
  assert.is(watch.to.asked.length, 2);
  assert.is(watch.path.migrations.pace.state.perSecond, watchLimits.movesPerSecond);
  watch.serve(watch.to);
  watch.advance(watchLimits.sentinelLookMs);
  assert.is(watch.path.detectors.sentinels.count, 1);
});

test("a backend whose second stream runs too far ahead of the first is asked anew when it is needed", () => {
  const { watch, first, second } = posted();
  const words: string[] = [];
  for (let version = 9; version < 9 + watchLimits.aheadEvents; version += 1) words.push(`~${version}a`);
  say(watch, second, words.join(" "));
  watch.has("=8");
  assert.is(second.resetCode, undefined);
  say(watch, second, "~5000a");
  assert.is.not(second.resetCode, undefined);
  assert.is(watch.path.buffered.bytes, 0);
  say(watch, first, "~9a");
  watch.has("=8 ~9a");
});

/** The events that each stream delivers, and whether they prove that the backends have different histories. */
const histories: readonly (readonly [
  what: string,
  first: string,
  second: string,
  first2: string,
  isProof: boolean,
])[] = [
  ["the second is beyond what the first showed, without having shown it", "+9a", "~11b", "", true],
  ["a bookmark of the second is", "+9a", "=12", "", true],
  ["the first is beyond what the second showed", "", "+9a", "~10b", true],
  ["the second has another event between two of the first", "", "+9a ~10b", "+9a ~11b", true],
  ["both are alike", "+9a ~10a", "+9a ~10a", "~11b", false],
  ["the second is behind", "+9a ~10a", "+9a", "~11b", false],
  ["the second is ahead", "+9a", "+9a ~10a ~11b", "~10a", false],
];
for (const [what, one, two, three, isProof] of histories)
  test(`of two histories the first goes on: ${what}`, () => {
    const { watch, first, second } = posted();
    const told: string[] = [];
    watch.path.migrations.anomalies.onUnlike = (resource, ours, theirs) =>
      told.push(`${resource} ${ours} ${theirs}`);
    say(watch, first, one);
    say(watch, second, two);
    say(watch, first, three);
    watch.path.settle();
    watch.has(["=8", one, three].filter((words) => words !== "").join(" "));
    assert.equal(told, isProof ? ["/configmaps a b"] : []);
    assert.is(second.resetCode !== undefined, isProof);
  });

test("nothing is proven by a watch with a selector: two versions of an apiserver may read it differently", () => {
  const { watch, first, second } = posted({ query: `${bookmarks}&labelSelector=a` });
  let isTold = false;
  watch.path.migrations.anomalies.onUnlike = () => {
    isTold = true;
  };
  say(watch, first, "+9a");
  say(watch, second, "~11b");
  watch.path.settle();
  assert.not(isTold);
  watch.has("=8 +9a");
});

test("an event out of order of the first goes on, as without a sentinel (incident 001)", () => {
  const { watch, first, second } = posted();
  say(watch, first, "+10a -9b");
  say(watch, second, "+10a");
  watch.has("=8 +10a -9b");
  assert.is.not(second.resetCode, undefined, "such a watch is never moved");
});

test("a cache that stands still is seen by the sentinel alone", () => {
  const { watch, second } = posted({ query: bookmarks });
  say(watch, second, "+9a");
  watch.advance(limits.behindMs + 3 * watchLimits.stallLookMs);
  watch.has("=8 +9a");
  assert.is(watch.entries("cache.stalled")[0]?.backend, "a");
});

test("with three backends one that came back is asked for the resource, so that its cache is warm", () => {
  const path = new PlayedPath(["a", "b", "c"], { compares: "watches" });
  const watch = new PlayedWatch({ path, query: bookmarks });
  watch.serve(watch.from, "=8");
  const seen = new Set<PlayedBackend>([watch.from]);
  for (let turn = 0; turn < 2; turn += 1) {
    path.clock.advance(establishedMs);
    for (const backend of path.played.values())
      if (!seen.has(backend) && backend.asked.length > 0) {
        backend.last.side?.sendHeaders(ok, false);
        seen.add(backend);
      }
    path.settle();
  }
  assert.is(seen.size, 3);
  path.clock.advance(establishedMs);
  assert.is(path.detectors.sentinels.count, 1);
});

test.run();
