import { suite } from "uvu";
import * as assert from "uvu/assert";
import { allowanceOf } from "../../../src/proxy/balance/balance.ts";
import { balanceLimits } from "../../../src/proxy/balance/limits.ts";
import { type Move, planMoves, Rests } from "../../../src/proxy/balance/plan-moves.ts";
import { Capacity } from "../../../src/proxy/load/capacity.ts";
import { loadLimits } from "../../../src/proxy/load/limits.ts";
import { seeded } from "../../support/random.ts";

const test = suite("proxy/balance/steady");

const rounds = Number(process.env["RUNS"] ?? 40);

type Client = { load: number; backend: string; isMovable: boolean };

/** Returns the time, in ms, that a read takes at a backend of whose capacity this share is in use. */
const latency = (used: number): number => 10 / Math.max(0.02, 1 - used);

/**
 * Simulates clients and three backends. Backend "a" can serve `speed` times as much as each of the others. All clients
 * begin at one backend. Ten seconds after a backend's load has risen, its reads become slower. Returns the number of
 * moves in each quarter of an hour.
 */
function run(seed: number, { speed, used, count }: { speed: number; used: number; count: number }): number[] {
  const random = seeded(seed);
  const names = ["a", "b", "c"];
  const clients = Array.from({ length: count }, (): Client => {
    const load = random.chance(0.1) ? 20 + random.below(100) : 1 + random.below(10);
    return { load, backend: "c", isMovable: true };
  });
  const sum = clients.reduce((all, { load }) => all + load, 0);
  // The capacity of each backend, chosen so that the share `used` of the total capacity is in use.
  const served = new Map(
    names.map((name) => [name, ((name === "a" ? speed : 1) * sum) / (used * (2 + speed))]),
  );
  const capacities = new Map(names.map((name) => [name, new Capacity()]));
  const ms = new Map(names.map((name) => [name, 10]));
  const moves = [0, 0, 0, 0, 0, 0, 0, 0];
  const rests = new Rests<Client>();
  let isMoving = false;
  let allowance = 0;
  for (let second = 0; second < 7200; second += 1) {
    const loads = new Map(names.map((name) => [name, 0]));
    for (const { load, backend } of clients) loads.set(backend, (loads.get(backend) ?? 0) + load);
    for (const name of names) {
      const now = latency((loads.get(name) ?? 0) / (served.get(name) ?? 1)) * (0.9 + random.below(20) / 100);
      ms.set(name, (ms.get(name) ?? 0) + (now - (ms.get(name) ?? 0)) * 0.1);
    }
    if (second % loadLimits.capacityLooks === 0)
      for (const [name, capacity] of capacities) {
        const others = names.filter((one) => one !== name).map((one) => ms.get(one) ?? 0);
        const [own, median] = [ms.get(name) ?? 0, Math.min(...others)];
        capacity.regulate(own - median < loadLimits.slowReadMs ? 1 : own / median);
      }
    if ((second * 1000) % balanceLimits.balanceMs !== 0) continue;
    const shares = new Map(names.map((name) => [name, capacities.get(name)?.share ?? 1]));
    const gained = allowanceOf(count, balanceLimits.balanceMs);
    allowance = Math.min(allowance + gained, Math.max(1, gained));
    const slack: number = isMoving ? balanceLimits.restSlack : balanceLimits.rebalanceSlack;
    // The measured load of a client varies.
    const measured = clients.map((client) => ({
      ...client,
      client,
      isMovable: !rests.isResting(client, second * 1000),
      load: Math.max(1, Math.round(client.load * (0.9 + random.below(20) / 100))),
    }));
    const planned: readonly Move<Client>[] = planMoves(measured, shares, Math.floor(allowance), slack);
    if (allowance >= 1) isMoving = planned.length > 0;
    allowance -= planned.length;
    for (const { client, to } of planned) {
      client.backend = to;
      rests.moved(client, second * 1000);
    }
    const quarter = Math.floor(second / 900);
    moves[quarter] = (moves[quarter] ?? 0) + planned.length;
  }
  return moves;
}

test("with random clients and one slow backend, the moves come to rest within two hours", () => {
  const random = seeded(1);
  let [clients, first, last] = [0, 0, 0];
  for (let seed = 1; seed <= rounds; seed += 1) {
    const mix = {
      speed: 0.25 + random.below(76) / 100,
      used: 0.2 + random.below(66) / 100,
      count: 50 + random.below(251),
    };
    const moves = run(seed, mix);
    const [begin = 0, end = 0] = [moves.at(0), moves.at(-1)];
    assert.ok(begin > 0, `seed ${seed}: nothing moved at first`);
    assert.ok(end <= 3 + mix.count * 0.05, `seed ${seed}: ${moves.join()} of ${mix.count} clients`);
    clients += mix.count;
    first += begin;
    last += end;
  }
  assert.ok(
    last <= clients * 0.005,
    `${last} moves of ${clients} clients in the last quarter of an hour, ${first} in the first`,
  );
});

test.run();
