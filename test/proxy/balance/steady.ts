/**
 * Simulates clients and three backends for two hours: the balancing moves clients, which changes how fast the backends
 * are, which changes how the balancing moves clients. Shows whether this loop comes to rest.
 */
import { allowanceOf } from "../../../src/proxy/balance/balance.ts";
import { balanceLimits } from "../../../src/proxy/balance/limits.ts";
import { type Move, planMoves, Rests } from "../../../src/proxy/balance/plan-moves.ts";
import { Capacity } from "../../../src/proxy/load/capacity.ts";
import { loadLimits } from "../../../src/proxy/load/limits.ts";
import { type Random, seeded } from "../../support/random.ts";

type Client = { readonly load: number; backend: string };
type Measured = { readonly client: Client; backend: string; load: number; isMovable: boolean };

const names = ["a", "b", "c"];
const quarterSeconds = 900;

/** Returns the time, in ms, that a read takes at a backend of whose capacity this share is in use. */
const latency = (used: number): number => 10 / Math.max(0.02, 1 - used);

/** Returns a factor between 0.9 and 1.1, because every measured value varies. */
const noise = (random: Random): number => 0.9 + random.below(20) / 100;

/**
 * The clients and backends of one seed. Backend "a" can serve a quarter as much as each other backend, the same as
 * each, or something in between. All clients begin at one backend. Ten seconds after a backend's load has risen, its
 * reads become slower.
 */
class Balancing {
  readonly #random: Random;
  readonly #clients: readonly Measured[];
  readonly #backends;
  readonly #rests = new Rests<Client>();
  #areLoadsKnown = false;
  #isMoving = false;
  #allowance = 0;
  #second = 0;

  constructor(seed: number) {
    const random = seeded(seed);
    const speed = 0.25 + random.below(76) / 100;
    const used = 0.2 + random.below(66) / 100;
    this.#random = random;
    this.#clients = Array.from({ length: 50 + random.below(251) }, (): Measured => {
      const load = random.chance(0.1) ? 20 + random.below(100) : 1 + random.below(10);
      const client = { load, backend: "c" };
      return { client, backend: "c", load, isMovable: true };
    });
    const sum = this.#clients.reduce((all, { load }) => all + load, 0);
    // The capacity of each backend, chosen so that the share `used` of the total capacity is in use.
    const served = (name: string): number => ((name === "a" ? speed : 1) * sum) / (used * (2 + speed));
    this.#backends = names.map((name) => ({
      name,
      served: served(name),
      capacity: new Capacity(),
      load: 0,
      ms: 10,
    }));
  }

  get clients(): number {
    return this.#clients.length;
  }

  /** Plays the next quarter of an hour. Returns the number of moves. */
  playQuarter(): number {
    let moves = 0;
    for (const end = this.#second + quarterSeconds; this.#second < end; this.#second += 1) {
      this.#read();
      if (this.#second % loadLimits.capacityLooks === 0) this.#regulate();
      if ((this.#second * 1000) % balanceLimits.balanceMs === 0) moves += this.#balance();
    }
    return moves;
  }

  /** Updates the average time of each backend's reads. */
  #read(): void {
    if (!this.#areLoadsKnown)
      for (const one of this.#backends) {
        const own = this.#clients.filter(({ client }) => client.backend === one.name);
        one.load = own.reduce((all, { client }) => all + client.load, 0);
      }
    this.#areLoadsKnown = true;
    for (const one of this.#backends) {
      const ms = latency(one.load / one.served) * noise(this.#random);
      one.ms += (ms - one.ms) * 0.1;
    }
  }

  #regulate(): void {
    for (const one of this.#backends) {
      const others = this.#backends.filter((other) => other !== one);
      const least = Math.min(...others.map(({ ms }) => ms));
      one.capacity.regulate(one.ms - least < loadLimits.slowReadMs ? 1 : one.ms / least);
    }
  }

  #balance(): number {
    const now = this.#second * 1000;
    const shares = new Map(this.#backends.map(({ name, capacity }) => [name, capacity.share]));
    const gained = allowanceOf(this.clients, balanceLimits.balanceMs);
    this.#allowance = Math.min(this.#allowance + gained, Math.max(1, gained));
    const slack: number = this.#isMoving ? balanceLimits.restSlack : balanceLimits.rebalanceSlack;
    for (const one of this.#clients) {
      one.backend = one.client.backend;
      one.load = Math.max(1, Math.round(one.client.load * noise(this.#random)));
      one.isMovable = !this.#rests.isResting(one.client, now);
    }
    const moves: readonly Move<Client>[] = planMoves(
      this.#clients,
      shares,
      Math.floor(this.#allowance),
      slack,
    );
    if (this.#allowance >= 1) this.#isMoving = moves.length > 0;
    this.#allowance -= moves.length;
    for (const { client, to } of moves) {
      client.backend = to;
      this.#rests.moved(client, now);
      this.#areLoadsKnown = false;
    }
    return moves.length;
  }
}

export type BalanceSum = {
  readonly problems: string[];
  clients: number;
  first: number;
  secondHour: number;
  last: number;
  late: number;
};

/**
 * Plays two hours of each seed from `from` to `to`. A seed has a problem if nothing moves at first, or if the moves do
 * not come to rest. At rest, at most 3 moves and 5 % of the clients move in a quarter of an hour.
 *
 * The measured loads vary at random, so a heavy client may still move after an hour without moves. If a slow backend is
 * almost fully used, this one move changes its read times so much that more moves follow. The steps of the capacities
 * shrink meanwhile, so these moves end too; an oscillation does not end. A seed that is not at rest after two hours is
 * therefore played on until it has been at rest for an hour, or until eight hours are over.
 *
 * `first`, `last`: the moves in the first and in the last quarter of the two hours. `late`: the number of seeds that
 * were played for longer.
 */
export function playBalances(from: number, to: number): BalanceSum {
  const sum: BalanceSum = { problems: [], clients: 0, first: 0, secondHour: 0, last: 0, late: 0 };
  for (let seed = from; seed <= to; seed += 1) {
    const balancing = new Balancing(seed);
    const { clients } = balancing;
    const moves = Array.from({ length: 8 }, () => balancing.playQuarter());
    const [first = 0, last = 0] = [moves.at(0), moves.at(-1)];
    sum.clients += clients;
    sum.first += first;
    sum.secondHour += moves.slice(-4).reduce((all, one) => all + one, 0);
    sum.last += last;
    const isResting = (quarter: number): boolean => quarter <= 3 + clients * 0.05;
    let isAtRest = isResting(last);
    if (!isAtRest) sum.late += 1;
    while (!isAtRest && moves.length < 32) {
      moves.push(balancing.playQuarter());
      isAtRest = moves.slice(-4).every(isResting);
    }
    if (first === 0) sum.problems.push(`seed ${seed}: nothing moved at first`);
    if (!isAtRest) sum.problems.push(`seed ${seed}: ${moves.join()} of ${clients} clients`);
  }
  const areMany = sum.secondHour > sum.clients * secondHourMoves || sum.last > sum.clients * lastMoves;
  if (areMany && to - from >= fewSeeds)
    sum.problems.push(`${sum.secondHour} moves in the second hour, ${sum.last} in its last quarter`);
  return sum;
}

/** The most moves in the second hour, and in its last quarter, as a share of the clients of all seeds. */
const secondHourMoves = 0.005;
const lastMoves = 0.002;
/** With so few seeds, these shares depend too much on a single seed. */
const fewSeeds = 20;
