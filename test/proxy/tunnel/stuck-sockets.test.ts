import net from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  HungTunnels,
  type HungTunnelsParts,
  hungClientRetransmits,
  hungLooks,
  hungRetransmits,
  socketTableMs,
} from "../../../src/proxy/tunnel/stuck-sockets.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";
import { PlayedPath } from "../../support/path.ts";

const test = suite("proxy/tunnel/stuck-sockets");

const well = (): boolean => true;

const unasked: HungTunnelsParts["backends"] = {
  factsOf: () => {
    throw new Error("asked for a verdict");
  },
  onLost: () => {
    throw new Error("asked for a verdict");
  },
};

type Played = {
  readonly clock: ManualClock;
  readonly hung: HungTunnels;
  readonly counts: Map<string, number>;
  reads: number;
  /** If false, the socket table cannot be read. */
  isReadable: boolean;
  /** Lets the detector check the sockets `times` times, once each second. */
  look(times: number): Promise<void>;
};

function play(): Played {
  const clock = manualClock();
  const counts = new Map<string, number>();
  const read = (): Promise<ReadonlyMap<string, number> | undefined> => {
    played.reads += 1;
    return Promise.resolve(played.isReadable ? counts : undefined);
  };
  const played: Played = {
    clock,
    counts,
    hung: new HungTunnels({ clock, read, backends: unasked }),
    reads: 0,
    isReadable: true,
    async look(times) {
      for (let time = 0; time < times; time += 1) {
        clock.advance(socketTableMs);
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    },
  };
  return played;
}

test("a tunnel whose socket gets nothing through ends, by either attempt, and the others go on", async () => {
  const { hung, counts, look } = play();
  const ended: string[] = [];
  for (const name of ["a", "b", "c"])
    hung.watch({ down: `${name}-down`, up: `${name}-up` }, well, () => ended.push(name));
  counts.set("a-up", hungRetransmits);
  counts.set("b-down", hungClientRetransmits);
  await look(hungLooks + 3);
  assert.equal(ended, ["a", "b"]);
});

test("a short hole, and one that heals just after the last try, cost nothing", async () => {
  const { hung, counts, look } = play();
  hung.watch({ down: "b", up: "a" }, well, () => assert.unreachable("it lives"));
  for (let hole = 0; hole < 3; hole += 1) {
    for (const count of [
      2,
      hungRetransmits - 1,
      ...Array.from({ length: hungLooks - 1 }, () => hungRetransmits),
    ]) {
      counts.set("a", count);
      await look(1);
    }
    counts.clear();
    await look(1);
  }
});

test("a client's network that is away for 25 s costs no tunnel with output under way, as on a direct connection", async () => {
  const { hung, counts, look } = play();
  let ended = 0;
  hung.watch({ down: "down", up: "up" }, well, () => {
    ended += 1;
  });
  for (let count = 1; count < hungClientRetransmits; count += 1) {
    counts.set("down", count);
    await look(hungLooks);
  }
  assert.is(ended, 0);
});

test("a hole of all is not the tunnel's: it lives until its kernel has tried twice in vain since the backend is back", async () => {
  const { hung, counts, look } = play();
  let isWell = true;
  let ended = 0;
  hung.watch(
    { down: "down", up: "up" },
    () => isWell,
    () => {
      ended += 1;
    },
  );
  isWell = false;
  for (let count = 1; count <= 6; count += 1) {
    counts.set("up", count);
    await look(2);
  }
  isWell = true;
  // The network was dead for 9 s. The kernel retransmits only 3.6 s after the network is back.
  for (const count of [6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7]) {
    counts.set("up", count);
    await look(1);
  }
  assert.is(ended, 0);
  counts.set("up", 8);
  await look(hungLooks);
  assert.is(ended, 1);
});

test("what got through forgets the hole of all", async () => {
  const { hung, counts, look } = play();
  let isWell = false;
  let ended = 0;
  hung.watch(
    { down: "down", up: "up" },
    () => isWell,
    () => {
      ended += 1;
    },
  );
  counts.set("up", 6);
  await look(1);
  isWell = true;
  counts.clear();
  await look(1);
  counts.set("up", hungRetransmits);
  await look(hungLooks);
  assert.is(ended, 1);
});

test("the socket table is not read while there is no tunnel, and a tunnel that is over is not reported", async () => {
  const played = play();
  await played.look(5);
  assert.is(played.reads, 0);
  const undo = played.hung.watch({ down: "b", up: "a" }, well, () => assert.unreachable("it is over"));
  played.counts.set("a", 10);
  await played.look(1);
  undo();
  await played.look(10);
  assert.ok(played.reads <= 2);
});

test("a socket table that cannot be read ends no tunnel, for four hours", async () => {
  const clock = manualClock();
  const hung = new HungTunnels({ clock, backends: unasked, read: () => Promise.reject(new Error("EACCES")) });
  hung.watch({ down: "b", up: "a" }, well, () => assert.unreachable("the socket table cannot be read"));
  for (let second = 0; second < 4 * 3600; second += 1) {
    clock.advance(socketTableMs);
    await Promise.resolve();
    await Promise.resolve();
  }
});

test("a check without a socket table does not delay the end of a stuck tunnel", async () => {
  const played = play();
  let ended = 0;
  played.hung.watch({ down: "down", up: "up" }, well, () => {
    ended += 1;
  });
  played.counts.set("up", hungRetransmits);
  await played.look(hungLooks - 1);
  played.isReadable = false;
  await played.look(3);
  assert.is(ended, 0);
  played.isReadable = true;
  await played.look(1);
  assert.is(ended, 1);
});

test("a tunnel to a backend that answers lives for 30 s while nothing gets through, as the kernel counts it", async () => {
  const { hung, counts, look } = play();
  let endedAt = 0;
  let second = 0;
  hung.watch({ down: "down", up: "up" }, well, () => {
    endedAt = second;
  });
  // The kernel retransmits after 0.2 s, and then doubles the pause each time.
  for (second = 1; second <= 40; second += 1) {
    const tries = [0.2, 0.6, 1.4, 3, 6.2, 12.6, 25.4, 51].filter((at) => at <= second).length;
    counts.set("up", tries);
    await look(1);
  }
  assert.is(endedAt, 31);
});

test("a check without a socket table does not forget what happened while the whole backend was silent", async () => {
  const played = play();
  let isWell = false;
  let ended = 0;
  played.hung.watch(
    { down: "down", up: "up" },
    () => isWell,
    () => {
      ended += 1;
    },
  );
  played.counts.set("up", 6);
  await played.look(1);
  isWell = true;
  played.isReadable = false;
  await played.look(1);
  played.isReadable = true;
  await played.look(2 * hungLooks);
  assert.is(ended, 0, "the kernel has not retransmitted since the backend is back");
});

test("a tunnel ends with its backend: once that is dead and silent", async () => {
  const path = new PlayedPath(["a"], { isProbed: true });
  const { clock, backends } = path;
  const tunnels = new HungTunnels({ clock, backends, read: () => Promise.resolve(new Map()) });
  const [down, up] = [new net.Socket(), new net.Socket()];
  const reasons: string[] = [];
  tunnels.watchTunnel({ down, up, backend: "a" }, (reason) => reasons.push(reason));
  const stop = tunnels.watchTunnel({ down, up, backend: "a" }, () => assert.unreachable("it is over"));
  stop();
  clock.advance(1000);
  path.backend("a").blackHole();
  // It is the only backend. When all backends fall silent, the proxy's own network may be at fault, so the proxy waits
  // this long before it calls the backend dead (D14).
  clock.advance(9900);
  assert.equal(reasons, []);
  clock.advance(1600);
  assert.equal(reasons, ["backend_dead"]);
});

test.run();
