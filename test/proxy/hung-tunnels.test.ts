import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../src/limits.ts";
import { HungTunnels } from "../../src/proxy/hung-tunnels.ts";
import { type ManualClock, manualClock } from "../support/clock.ts";

const test = suite("proxy/hung-tunnels");

type Played = {
  readonly clock: ManualClock;
  readonly hung: HungTunnels;
  readonly counts: Map<string, number>;
  reads: number;
  /** So many seconds of looks. */
  look(times: number): Promise<void>;
};

function play(): Played {
  const clock = manualClock();
  const counts = new Map<string, number>();
  const read = (): Promise<ReadonlyMap<string, number>> => {
    played.reads += 1;
    return Promise.resolve(counts);
  };
  const played: Played = {
    clock,
    counts,
    hung: new HungTunnels({ clock, read }),
    reads: 0,
    async look(times) {
      for (let time = 0; time < times; time += 1) {
        clock.advance(limits.socketTableMs);
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    },
  };
  return played;
}

test("a tunnel whose socket gets nothing through ends, by either leg, and the others go on", async () => {
  const { hung, counts, look } = play();
  const ended: string[] = [];
  for (const name of ["a", "b", "c"]) hung.watch([`${name}-down`, `${name}-up`], () => ended.push(name));
  counts.set("a-up", limits.hungRetransmits);
  counts.set("b-down", limits.hungRetransmits + 1);
  await look(limits.hungLooks + 3);
  assert.equal(ended, ["a", "b"]);
});

test("a short hole, and one that heals just after the last try, cost nothing", async () => {
  const { hung, counts, look } = play();
  hung.watch(["a"], () => assert.unreachable("it lives"));
  for (let hole = 0; hole < 3; hole += 1) {
    for (const count of [2, limits.hungRetransmits - 1, limits.hungRetransmits]) {
      counts.set("a", count);
      await look(1);
    }
    counts.clear();
    await look(1);
  }
});

test("nobody looks while there is no tunnel, and one that is over is not told", async () => {
  const played = play();
  await played.look(5);
  assert.is(played.reads, 0);
  const undo = played.hung.watch(["a"], () => assert.unreachable("it is over"));
  played.counts.set("a", 10);
  await played.look(1);
  undo();
  await played.look(10);
  assert.ok(played.reads <= 2);
});

test("a table that cannot be read says nothing against anyone, for four hours", async () => {
  const clock = manualClock();
  const hung = new HungTunnels({ clock, read: () => Promise.reject(new Error("EACCES")) });
  hung.watch(["a"], () => assert.unreachable("nobody knows"));
  for (let second = 0; second < 4 * 3600; second += 1) {
    clock.advance(limits.socketTableMs);
    await Promise.resolve();
    await Promise.resolve();
  }
});

test.run();
