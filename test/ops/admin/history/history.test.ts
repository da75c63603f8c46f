import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Journal } from "../../../../src/events/journal.ts";
import type { History } from "../../../../src/ops/admin/history/history.ts";
import type { Recorded, RecordedCluster } from "../../../../src/ops/admin/history/recorded.ts";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import { ActiveRequests } from "../../../../src/proxy/request/active-requests.ts";
import { historyIn, historyOf } from "../../../support/api-scene.ts";
import { type ManualClock, manualClock } from "../../../support/clock.ts";
import { changed } from "../../../support/incidents.ts";
import { PlayedPath } from "../../../support/path.ts";
import { PlayedWatch } from "../../../support/watch-path.ts";

const test = suite("ops/admin/history/history");

type Column = readonly (number | null)[];
type Answer = {
  readonly first: number;
  readonly next: number;
  readonly startedAt: string;
  readonly process: Readonly<Record<string, Column>>;
  readonly backends: readonly { readonly name: string; readonly series: Readonly<Record<string, Column>> }[];
};

async function read(history: History, after?: number): Promise<Answer> {
  return JSON.parse(await history.text(after)) as Answer;
}

const { historyStepMs, historySteps, historyBackends } = adminLimits;

test("a step has the rates, the latencies, the open requests by kind of client, and the worst state", async () => {
  const path = new PlayedPath(["a", "b"]);
  const history = historyOf(path);
  history.start();
  path.clock.advance(historyStepMs);
  const kubelet = path.client();
  for (const [at, code] of [200, 503, 429, 200].entries()) {
    kubelet.ask("GET", `/api/v1/pods/p${at}`);
    path.settle();
    path.clock.advance(at === 3 ? 400 : 2);
    path.backend("a").last.answer(code, "{}");
    path.settle();
  }
  path.journal.write(changed("a", "ready", "suspect"));
  path.journal.write(changed("a", "suspect", "ready"));
  path.clock.advance(historyStepMs);
  const { backends, process, first, next } = await read(history);
  assert.equal([first, next], [0, 2]);
  const a = backends.find(({ name }) => name === "a")?.series;
  assert.equal(a?.["requests"]?.[1], 0.8);
  assert.equal([a?.["serverErrors"]?.[1], a?.["tooManyRequests"]?.[1]], [0.2, 0.2]);
  const [p50, p99] = [Number(a?.["p50Ms"]?.[1]), Number(a?.["p99Ms"]?.[1])];
  assert.ok(p50 >= 2 && p50 <= 2.5, `${p50}`);
  assert.ok(p99 >= 400 && p99 <= 500, `${p99}`);
  assert.equal(a?.["state"], [0, 3], "it was suspect for a moment");
  assert.equal([process["requests"]?.[1], process["failures"]?.[1]], [0.8, 0.2]);
  assert.equal([a?.["p50Ms"]?.[0], backends[1]?.series["p99Ms"]?.[1]], [null, null], "no request ended");
  history.stop();
});

test("watches are counted where they are, and their moves in the step in which they are journaled", async () => {
  const path = new PlayedPath(["a", "b"]);
  const history = historyOf(path);
  history.start();
  const watch = new PlayedWatch({ path, query: "resourceVersion=7" });
  watch.serve(watch.from, "+8a =9");
  const there = watch.from === path.backend("a") ? "a" : "b";
  path.clock.advance(historyStepMs);
  path.journal.write({ kind: "watches.moved", reason: "lost", from: there, to: "c", count: 3, slowestMs: 1 });
  path.clock.advance(historyStepMs);
  const one = (await read(history)).backends.find(({ name }) => name === there)?.series;
  assert.equal(one?.["watches"]?.slice(0, 2), [1, 1]);
  assert.equal(one?.["streams-other"]?.[0], 1);
  assert.equal(one?.["watchDelayMs"]?.slice(0, 2), [0, 0], "it delivers all writes");
  assert.equal(one?.["movedOut"]?.slice(0, 2), [0, 3]);
  const { streams } = path.measurementsOf(there).load;
  assert.ok(streams >= 1, `the watch is a stream: ${streams}`);
  assert.is(one?.["load"]?.at(-1), Math.round(streams * 100) / 100);
  history.stop();
});

test("of several processes, the load of a backend is added up, and its longest watch delay is kept", async () => {
  const clock = manualClock();
  const measured = { state: "ready", pingP99Ms: 0.8 } as const;
  const backends = (): Backends => [
    { ...measured, name: "a", watchDelay: { delayMs: 4, resource: "/pods" }, load: { streams: 12.5 } },
    { ...measured, name: "b", watchDelay: undefined, load: { streams: 3 } },
  ];
  const worker = (loads: Recorded["loads"], delays: Recorded["delays"]): Recorded => ({
    counts: [],
    latencies: [],
    watchEvents: 0,
    open: [],
    delays,
    loads,
  });
  const workers = [
    worker(
      [
        ["a", 100],
        ["b", 7],
      ],
      [["a", 9]],
    ),
    worker([["a", 40]], [["a", 2]]),
  ];
  const history = historyIn(
    { clock, journal: new Journal(clock) },
    { exchanges: new ActiveRequests(), backends },
    () => Promise.resolve(workers),
  );
  history.start();
  clock.advance(historyStepMs);
  await Promise.resolve();
  const series = (await read(history)).backends.map((one) => one.series);
  assert.equal(
    series.map(({ load, watchDelayMs }) => [load, watchDelayMs]),
    [
      [[152.5], [9]],
      [[10], [null]],
    ],
  );
  history.stop();
});

/** A history of a cluster whose backends get no requests and need no connections. */
type Backends = ReturnType<RecordedCluster["backends"]>;
type Quiet = { readonly history: History; readonly clock: ManualClock; present: readonly string[] };

function quiet(names: readonly string[]): Quiet {
  const clock = manualClock();
  const backends = (): Backends =>
    one.present.map((name) => ({
      name,
      state: "ready",
      pingP99Ms: 0.8,
      watchDelay: undefined,
      load: { streams: 0 },
    }));
  const cluster = { exchanges: new ActiveRequests(), backends };
  const history = historyIn({ clock, journal: new Journal(clock) }, cluster);
  const one: Quiet = { clock, history, present: names };
  history.start();
  return one;
}

test("an hour is kept and no more, in memory of a fixed size", async () => {
  const { history, clock } = quiet(["a", "b"]);
  clock.advance(historyStepMs * (historySteps + 20));
  const { first, next, backends } = await read(history);
  assert.equal([first, next], [20, historySteps + 20]);
  assert.is(backends[0]?.series["state"]?.length, historySteps);
  assert.ok(history.bytes < 121_000, `${history.bytes} bytes`);
  history.stop();
});

test("a reader gets only the steps after its last one, and none if there is none", async () => {
  const { history, clock } = quiet(["a"]);
  clock.advance(historyStepMs * 5);
  const { first, next, process } = await read(history, 2);
  assert.equal([first, next, process["watches"]?.length], [3, 5, 2]);
  for (const after of [4, 5, 900]) {
    const none = await read(history, after);
    assert.equal([none.first, none.next, none.process["watches"]?.length], [5, 5, 0], `${after}`);
  }
  history.stop();
});

test("backends that come and go take no more memory than the most that a cluster may have", async () => {
  const names = (from: number): string[] =>
    Array.from({ length: historyBackends }, (_, at) => `cp-${from + at}`);
  const scene = quiet(names(0));
  const { history, clock } = scene;
  const kept = async (): Promise<string[]> => {
    const reading = read(history, 1e6);
    // The answer has so many series that it takes two slices of work.
    clock.advance(1);
    return (await reading).backends.map(({ name }) => name);
  };
  clock.advance(historyStepMs * 2);
  scene.present = names(32);
  clock.advance(historyStepMs * 2);
  assert.equal(await kept(), names(0), "a removed backend is still shown");
  clock.advance(historyStepMs * (historySteps + 2));
  assert.equal((await kept()).toSorted(), names(32).toSorted(), "an hour later it is not");
  assert.ok(history.bytes < 3.2e6, `${history.bytes} bytes`);
  history.stop();
});

test("a process that was stopped for a while shows a gap", async () => {
  const { history, clock } = quiet(["a"]);
  clock.advance(historyStepMs * 2);
  clock.stall(historyStepMs * 3);
  clock.advance(historyStepMs * 2);
  const { process } = await read(history);
  assert.equal(process["watches"], [0, 0, null, null, 0, 0, 0]);
  history.stop();
});

test.run();
