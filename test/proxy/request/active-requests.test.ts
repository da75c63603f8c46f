import { suite } from "uvu";
import * as assert from "uvu/assert";
import { bearer, PlayedPath } from "../../support/path.ts";
import { linesOf, PlayedWatch } from "../../support/watch-path.ts";

const test = suite("proxy/request/active-requests");

test("live exchanges are counted by kind, finished ones by verb, code and backend", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  client.ask("GET", "/api/v1/pods?watch=1");
  client.ask("GET", "/api/v1/pods");
  path.settle();
  assert.equal([path.exchanges.active("watch"), path.exchanges.active("plain")], [1, 1]);
  path.backend("a").asked[1]?.answer(200);
  path.settle();
  assert.equal(path.exchanges.counts, [{ verb: "list", code: 200, backend: "a", count: 1 }]);
  assert.is(path.exchanges.ends.complete, 1);
});

test("what watches deliver and how they stand is counted as they go on: a scrape looks at none of them", () => {
  const watch = new PlayedWatch({ query: "" });
  const { exchanges } = watch.path;
  const states = (): unknown => Object.fromEntries(exchanges.watched.states);
  assert.equal(states(), { opaque: 1 }, "not answered yet");
  watch.serve(watch.from, "");
  assert.equal(states(), { opening: 1 });
  const say = (words: string): void => {
    watch.from.asked[0]?.say(linesOf(words));
    watch.path.settle();
  };
  say("+8a");
  assert.equal(states(), { listing: 1 });
  say("~9a ~10a ~9a");
  assert.equal(states(), { live: 1 });
  const second = watch.client.ask("GET", "/api/v1/pods?watch=1", [bearer("t")]);
  watch.path.settle();
  assert.equal(states(), { live: 1, opaque: 1 });
  second.stream.reset(8);
  watch.path.settle();
  const { events, versionRegressions, bytes } = exchanges.watched;
  assert.equal([[...events.values()], versionRegressions, bytes], [[4], 1, watch.ear.body.length]);
  watch.ear.stream.reset(8);
  watch.path.settle();
  const { states: after, ...counted } = exchanges.watched;
  assert.equal([after.size, counted], [0, { events, bytes, versionRegressions }], "counters never fall");
  assert.is(exchanges.active("watch"), 0);
});

test("whatever clients and backends invent, the counts stay few (A54)", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  for (let index = 0; index < 1200; index += 1) {
    client.ask(`M${index}`, "/x");
    path.settle();
    path.backend("a").last.answer(200 + (index % 400));
    path.settle();
  }
  assert.ok(path.exchanges.counts.length <= 510, String(path.exchanges.counts.length));
});

test("requests of a removed backend are in the sum, and a backend that is added again has its own count", () => {
  const path = new PlayedPath(["a", "b"]);
  const client = path.client();
  for (const names of [["a"], ["b"], ["a"]]) {
    path.reconcile(names);
    if (names.includes("b")) continue;
    path.clock.advance(100);
    client.ask("GET", "/x", [bearer("t")]);
    path.settle();
    path.backend("a").last.answer(200);
    path.settle();
  }
  assert.equal(path.exchanges.counts, [
    { verb: "get", code: 200, backend: "other", count: 1 },
    { verb: "get", code: 200, backend: "a", count: 1 },
  ]);
});

test("events are counted by the backend whose stream delivered them; removed backends are one sum", () => {
  const path = new PlayedPath(["a", "b"]);
  const watch = new PlayedWatch({ path });
  const { from, to } = watch;
  watch.serve(from, "+8a +9b");
  watch.kill(from);
  watch.serve(to, "+10a");
  const of = (backend: string): number | undefined => path.exchanges.watched.events.get(backend);
  const [first, second] = from === path.backend("a") ? ["a", "b"] : ["b", "a"];
  assert.equal([of(first), of(second)], [2, 1]);
  path.reconcile([second]);
  watch.serve(to, "+11a", []);
  assert.equal([of(first), of(second), of("other")], [undefined, 2, 2]);
});

test("a request that has left with all bytes taken is not kept, however many come", () => {
  const path = new PlayedPath(["a"]);
  for (let index = 0; index < 200; index += 1) {
    const ear = path.client().ask("GET", "/x", [bearer("t")]);
    ear.isReading = false;
    path.settle();
    path.backend("a").last.answer(200, "x".repeat(300_000));
    path.settle();
    assert.is(path.exchanges.holders.length, 1);
    ear.stream.reset(8);
    path.settle();
  }
  assert.is(path.exchanges.holders.length, 0);
});

test.run();
