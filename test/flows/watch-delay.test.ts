/**
 * Measures on the whole data path how long after a write the watches of each backend deliver it, and tests the report
 * of a late backend.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Histogram } from "../../src/base/histogram.ts";
import type { EntryOf } from "../../src/events/journal.ts";
import { watchLimits } from "../../src/watch/limits.ts";
import { bearer, type PlayedBackend, PlayedPath } from "../support/path.ts";
import { json, linesOf, PlayedWatch } from "../support/watch-path.ts";

const test = suite("flows/watch-delay");

const configmaps = "/api/v1/configmaps";
const objects = "/api/v1/namespaces/n/configmaps";

/** Two backends with a watch of all ConfigMaps each, and a client that writes ConfigMaps. */
class Delays {
  readonly path = new PlayedPath(["a", "b"]);
  readonly watches: readonly PlayedWatch[];
  readonly #writer = this.path.client();
  #events = new Map<PlayedBackend, { say: (text: string) => void }>();

  constructor(query = "resourceVersion=7", resource = configmaps) {
    this.watches = [0, 1].map(() => {
      const watch = new PlayedWatch({ path: this.path, resource, query });
      this.#events.set(watch.from, watch.serve(watch.from));
      return watch;
    });
    assert.is(this.#events.size, 2, "each backend has a watch");
    this.path.clock.advance(3000);
  }

  /** Writes an object, and calls `before` just before the response. */
  write(
    version: string,
    { target = objects, method = "POST", before = (): void => {}, answer = "" } = {},
  ): void {
    const counts = new Map(Array.from(this.path.played.values(), (one) => [one, one.asked.length]));
    const ear = this.#writer.ask(method, target, [bearer("w")], false);
    ear.say("{}", true);
    this.path.settle();
    const asked = [...this.path.played.values()].find((one) => one.asked.length > (counts.get(one) ?? 0));
    before();
    const body = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"${version}"}}\n`;
    asked?.last.answer(201, answer || body, [json]);
    this.path.settle();
    assert.is(ear.status, "201");
  }

  show(name: string, words: string): void {
    this.#events.get(this.path.backend(name))?.say(linesOf(words));
    this.path.settle();
  }

  /** Number and sum in ms of the delays that were measured at a backend. */
  measured(name: string): readonly number[] {
    const histogram: Histogram | undefined = this.path.caches.writeDelays.histograms.get(name)?.get("");
    return [histogram?.count ?? 0, Math.round((histogram?.sum ?? 0) * 1000)];
  }

  lag(name: string): number | undefined {
    return this.path.measurementsOf(name).watchLagMs;
  }

  get reports(): readonly EntryOf<"watch.delayed">[] {
    return this.path.entries.filter(
      (entry): entry is EntryOf<"watch.delayed"> => entry.kind === "watch.delayed",
    );
  }
}

test("the delay runs from the response to the event, on each backend", () => {
  const delays = new Delays();
  delays.write("8");
  delays.path.clock.advance(3);
  delays.show("a", "+8x");
  delays.path.clock.advance(40);
  assert.equal([delays.lag("a"), delays.lag("b")], [0, 43]);
  delays.show("b", "+8x");
  assert.equal(
    [delays.measured("a"), delays.measured("b")],
    [
      [1, 3],
      [1, 43],
    ],
  );
  assert.equal(
    [delays.lag("b"), delays.path.measurementsOf("b").watchDelay],
    [0, { resource: "/configmaps", delayMs: 43 }],
  );
});

test("an event before the response is a delay of 0, and a newer event delivers an earlier write as well", () => {
  const delays = new Delays();
  delays.write("8", { before: () => delays.show("a", "+8x") });
  assert.equal(
    [delays.measured("a"), delays.measured("b")],
    [
      [1, 0],
      [0, 0],
    ],
  );
  delays.write("9");
  delays.path.clock.advance(10);
  delays.show("b", "+12x");
  assert.equal(delays.measured("b"), [2, 20]);
});

test("a write that changes nothing, a dry run, and one of another subresource create no version", () => {
  const delays = new Delays();
  const object = { target: `${objects}/x`, method: "PUT" };
  delays.write("6", object);
  assert.equal(
    [delays.measured("a"), delays.measured("b")],
    [
      [0, 0],
      [0, 0],
    ],
  );
  delays.write("8");
  delays.show("a", "+8x");
  delays.show("b", "+8x");
  delays.write("6", object);
  delays.write("8", object);
  delays.write("9", { target: `${objects}?dryRun=All` });
  delays.write("9", { target: `${objects}/x/other`, method: "PUT" });
  assert.equal([delays.lag("a"), delays.measured("a")[0], delays.measured("b")[0]], [0, 1, 1]);
  delays.write("9", object);
  delays.path.clock.advance(5);
  assert.is(delays.lag("a"), 5);
});

test("the Status of a binding or an eviction shows the pod's new version since Kubernetes 1.38, and none before", () => {
  const statusOf = (metadata: string): string =>
    `{"kind":"Status","apiVersion":"v1","metadata":${metadata},"status":"Success","code":201}\n`;
  for (const subresource of ["binding", "eviction"]) {
    const delays = new Delays("resourceVersion=7", "/api/v1/pods");
    const target = `/api/v1/namespaces/n/pods/x/${subresource}`;
    delays.write("", { target, answer: statusOf("{}") });
    delays.show("a", "+8x");
    assert.equal(delays.measured("a"), [0, 0]);
    delays.write("", { target, answer: statusOf('{"resourceVersion":"9"}') });
    delays.path.clock.advance(20);
    delays.show("a", "+9x");
    assert.equal(delays.measured("a"), [1, 20], subresource);
    delays.write("", { target: `${target}x`, answer: statusOf('{"resourceVersion":"10"}') });
    delays.show("a", "+10x");
    assert.equal(delays.measured("a"), [1, 20], "another subresource");
  }
});

test("of many writes that a backend lacks the oldest are kept, and a limited number", () => {
  const delays = new Delays();
  for (let version = 100; version < 1100; version += 1) {
    delays.write(String(version));
    delays.path.clock.advance(10);
  }
  delays.show("b", "+2000x");
  const [count = 0] = delays.measured("b");
  assert.is(count, watchLimits.writeMarks);
  assert.is(delays.path.measurementsOf("b").watchDelay?.delayMs, 10_000);
});

test("a write that is never delivered is given up after a minute", () => {
  const delays = new Delays();
  delays.write("8");
  delays.path.clock.advance(watchLimits.writeMarkMs + 1000);
  delays.write("9");
  assert.is(delays.lag("b"), 0);
  assert.equal(delays.measured("b"), [0, 0]);
});

test("without a watch of the whole resource nothing is measured", () => {
  const path = new PlayedPath(["a", "b"]);
  const watch = new PlayedWatch({ path, resource: objects });
  watch.serve(watch.from);
  path.clock.advance(3000);
  assert.is(path.measurementsOf("a").watchLagMs, undefined);
  const selecting = new Delays("resourceVersion=7&labelSelector=a");
  selecting.write("8");
  assert.is(selecting.lag("a"), undefined);
});

test("a backend that delivers writes late is reported, every few seconds, with the longest delay", () => {
  const delays = new Delays();
  delays.write("8");
  delays.show("a", "+8x");
  delays.path.clock.advance(watchLimits.lateMs + 400);
  assert.equal(delays.reports, [], "a moment is no delay");
  delays.path.clock.advance(watchLimits.lateLooks * watchLimits.delayLookMs);
  assert.equal(
    { ...delays.reports[0] },
    {
      kind: "watch.delayed",
      backend: "b",
      resource: "/configmaps",
      delayMs: delays.reports[0]?.delayMs,
      limitMs: watchLimits.lateMs,
      othersMs: 0,
      resources: 1,
    },
  );
  const first = delays.reports[0]?.delayMs ?? 0;
  assert.ok(first >= watchLimits.lateMs && first <= 4500, String(first));
  delays.path.clock.advance(300);
  delays.show("b", "+8x");
  delays.path.clock.advance(20_000);
  assert.is(delays.reports.length, 1, "it has delivered the write");
});

test("late watches that advance are reported at any rate of writes; punctual ones never", () => {
  const delays = new Delays();
  const delivered: [at: number, version: number][] = [];
  for (let version = 100; version < 1100; version += 1) {
    const now = delays.path.clock.now();
    delays.write(String(version));
    delays.show("a", `+${version}x`);
    delivered.push([now + 2500, version]);
    while ((delivered[0]?.[0] ?? now + 1) <= now) delays.show("b", `+${delivered.shift()?.[1]}x`);
    delays.path.clock.advance(20);
  }
  const names = new Set(delays.reports.map(({ backend }) => backend));
  assert.equal([...names], ["b"]);
  assert.ok(delays.reports.length >= 2 && delays.reports.length <= 5, String(delays.reports.length));
  for (const { delayMs } of delays.reports) assert.ok(Math.abs(delayMs - 2500) <= 100, String(delayMs));
});

test("a slow client's watch, which gets no more events, shows no delay of its backend", () => {
  const delays = new Delays();
  const watch = delays.watches.find(({ from }) => from === delays.path.backend("b"));
  assert.ok(watch);
  watch.ear.isReading = false;
  const filler = "+8".padEnd(40_000, "x");
  watch.say(watch.from, Array.from({ length: 10 }, () => filler).join(" "));
  delays.path.clock.advance(watchLimits.slowWatchMs);
  delays.write("9");
  delays.show("a", "+9x");
  delays.path.clock.advance(10_000);
  assert.equal(delays.reports, []);
});

test("a backend that is not ready is not reported as late, and its delays are forgotten with it", () => {
  const delays = new Delays();
  delays.write("8");
  delays.show("a", "+8x");
  delays.path.backend("b").kill();
  delays.path.clock.advance(10_000);
  assert.equal(delays.reports, []);
  assert.is(delays.lag("b"), undefined);
});

test.run();
