/**
 * A scripted proxy in front of a real store: the changes that the client reports have to be those that were made to the
 * store.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Json, jsonOf } from "../../../demo/objects/json.ts";
import { Store } from "../../../demo/objects/store.ts";
import { Beat, beatInto } from "../../../demo/story/beat.ts";
import type { DemoClient, Reply, Watcher } from "../../../demo/story/client.ts";
import { SteadyClient } from "../../../demo/story/steady-client.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";

const test = suite("demo/story/steady-client");

type Scene = {
  readonly clock: ManualClock;
  readonly client: SteadyClient;
  readonly beat: Beat;
  readonly watchers: Set<Watcher>;
  readonly asked: string[];
  status: number;
};

/** Starts the client. Afterwards its four watches are open, and it suspects no backend yet. */
async function started(): Promise<Scene> {
  const clock = manualClock();
  const store = new Store();
  const beat = new Beat(beatInto(store, clock), clock);
  const watchers = new Set<Watcher>();
  const asked: string[] = [];
  const scene = {
    clock,
    beat,
    watchers,
    asked,
    status: 200,
  };
  const list = (): Json => ({
    metadata: { resourceVersion: String(store.revision) },
    items: store.list("configmaps").map(jsonOf),
  });
  const connected = {
    isOpen: true,
    read(what: string): Promise<Reply> {
      asked.push(what.slice("GET ".length));
      return Promise.resolve({ status: 200, body: list(), problem: "" });
    },
    ask: () => Promise.resolve(scene.status),
    watch(path: string, watcher: Watcher) {
      asked.push(path);
      watchers.add(watcher);
    },
    close() {},
  };
  store.subscribe(({ object }) => {
    for (const watcher of watchers) watcher.event({ type: "MODIFIED", object: jsonOf(object) });
  });
  beat.start();
  const client = new SteadyClient({ connect: () => connected as unknown as DemoClient, beat, clock });
  await client.start();
  client.reset();
  return Object.assign(scene, { client });
}

/** Advances the clock by `ms` in steps of 50 ms, and lets pending promises run after each step. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let step = 0; step < ms / 50; step += 1) {
    clock.advance(50);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("while all is well nothing fails, hangs or is amiss", async () => {
  const { clock, client, beat } = await started();
  await pass(clock, 1_000);
  const { gets, latestEventMs, slowestGetMs, ...rest } = client.seen();
  assert.is(gets, 20);
  assert.equal([latestEventMs, slowestGetMs], [0, 0]);
  assert.equal(rest, { failedGets: 0, watches: 4, ends: 0, relists: 0, hung: 0, wrongEvents: 0 });
  client.stop();
  beat.stop();
});

test("GETs without an answer, and those that are answered with an error, are counted", async () => {
  const scene = await started();
  scene.status = 0;
  await pass(scene.clock, 200);
  scene.status = 502;
  await pass(scene.clock, 200);
  assert.is(scene.client.seen().failedGets, 8);
  scene.client.stop();
  scene.beat.stop();
});

test("a watch that says nothing while writes are made is hung, and its lateness is measured", async () => {
  const { clock, client, beat, watchers } = await started();
  const [first] = watchers;
  if (first !== undefined) watchers.delete(first);
  await pass(clock, 1_500);
  const { hung, latestEventMs } = client.seen();
  assert.is(hung, 1);
  assert.ok(latestEventMs >= 1_400 && latestEventMs <= 1_500, String(latestEventMs));
  client.stop();
  beat.stop();
});

test("a watch that ends is asked for again from its last version, one that breaks off lists first", async () => {
  const { clock, client, beat, watchers, asked } = await started();
  await pass(clock, 200);
  const [first, second] = watchers;
  asked.length = 0;
  for (const [watcher, isClean] of [[first, true] as const, [second, false] as const]) {
    if (watcher !== undefined) watchers.delete(watcher);
    watcher?.ended(isClean);
  }
  await pass(clock, 500);
  const { ends, relists, wrongEvents } = client.seen();
  assert.equal([ends, relists, wrongEvents], [1, 1, 0]);
  const again = asked.filter((path) => path.startsWith(Beat.path));
  assert.is(again.length, 3);
  assert.match(again[0] ?? "", /watch=true.*resourceVersion=\d+$/);
  assert.is(again[1], Beat.path);
  client.stop();
  beat.stop();
});

test("a skipped event and one that comes twice are amiss", async () => {
  const { clock, client, beat, watchers } = await started();
  const [first] = watchers;
  const event = (count: number): Json => ({
    type: "MODIFIED",
    object: { metadata: { name: "beat", resourceVersion: "9" }, data: { count: String(count) } },
  });
  beat.stop();
  await pass(clock, 100);
  first?.event(event(beat.count));
  first?.event(event(beat.count + 2));
  assert.is(client.seen().wrongEvents, 2);
  client.stop();
});

test.run();
