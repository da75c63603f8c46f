import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Backends } from "../../src/health/backends.ts";
import { Journal } from "../../src/journal.ts";
import { Fate, type Met } from "../../src/proxy/fate.ts";
import { type ManualClock, manualClock } from "../support/clock.ts";

const test = suite("proxy/fate");

type Played = {
  readonly clock: ManualClock;
  readonly backends: Backends;
  readonly fate: Fate;
  /** Probes that wait for what they meet. */
  readonly probes: ((met: Met) => void)[];
  /** Lets promises settle. */
  meet(met: Met): Promise<void>;
};

function play(): Played {
  const clock = manualClock();
  const backends = new Backends(["a", "b"], { clock, journal: new Journal(clock) });
  const probes: ((met: Met) => void)[] = [];
  const probe = (): Promise<Met> => new Promise((resolve) => probes.push(resolve));
  const fate = new Fate({ backends, clock, probe });
  return {
    clock,
    backends,
    fate,
    probes,
    async meet(met) {
      probes.shift()?.(met);
      await new Promise<void>((resolve) => setImmediate(resolve));
    },
  };
}

const lost = { kind: "dial", ok: false, reason: "timeout" } as const;

test("a backend that is dead by verdict, and silent on a fresh socket, takes its tunnels with it, once", async () => {
  const { backends, fate, probes, meet } = play();
  const ended: string[] = [];
  fate.onDead("a", () => ended.push("a1"));
  fate.onDead("a", () => ended.push("a2"));
  fate.onDead("b", () => ended.push("b"));
  fate.onDead("a", () => ended.push("a3"))();
  backends.learn("a", lost);
  assert.equal([ended.length, probes.length], [0, 1]);
  await meet("silence");
  assert.equal(ended, ["a1", "a2"]);
});

test("one that refuses has a living kernel, which will tell: asked again, never cut for it", async () => {
  const { clock, backends, fate, probes, meet } = play();
  let isEnded = false;
  fate.onDead("a", () => {
    isEnded = true;
  });
  backends.learn("a", lost);
  for (let round = 0; round < 3; round += 1) {
    await meet("refusal");
    assert.is(probes.length, 0);
    clock.advance(250);
    assert.is(probes.length, 1);
  }
  assert.not(isEnded);
  await meet("silence");
  assert.ok(isEnded);
});

test("the proof begins with the suspicion, so that it is there when the verdict falls", async () => {
  const { clock, backends, fate, probes, meet } = play();
  let isEnded = false;
  fate.onDead("a", () => {
    isEnded = true;
  });
  backends.learn("a", { kind: "silence", ms: 800 });
  await meet("silence");
  clock.advance(250);
  assert.equal([isEnded, probes.length], [false, 1]);
  backends.learn("a", lost);
  await meet("silence");
  assert.ok(isEnded);
});

test("a backend that came back meanwhile keeps its tunnels, whatever the old probe met", async () => {
  const { backends, fate, meet, clock, probes } = play();
  fate.onDead("a", () => assert.unreachable("it lives"));
  backends.learn("a", lost);
  backends.learn("a", { kind: "dial", ok: true, reason: "" });
  await meet("silence");
  clock.advance(10_000);
  assert.is(probes.length, 0);
});

test("who is bound after the verdict is told too, and who comes back later starts anew", async () => {
  const { backends, fate, probes, meet } = play();
  backends.learn("a", lost);
  const ended: number[] = [];
  const release = fate.onDead("a", () => ended.push(1));
  release();
  fate.onDead("a", () => ended.push(2));
  assert.is(probes.length, 2);
  await meet("silence");
  assert.equal(ended, [], "the old probe speaks for nobody");
  await meet("silence");
  assert.equal(ended, [2]);
});

test("nobody bound, nobody asked", async () => {
  const { backends, fate, probes } = play();
  fate.onDead("a", () => {})();
  backends.learn("a", lost);
  assert.is(probes.length, 0);
});

test.run();
