/**
 * Who is to be bound to another backend, so that the load is even again after a restart (F16). Pure: what clients have
 * open and what each backend counts for go in, a few moves come out, which balance.ts makes.
 */
import { limits } from "../../base/limits.ts";

/** What is known of one client. */
export type Sitter<Client> = {
  readonly client: Client;
  readonly backend: string;
  /** Streams that it has open. */
  readonly load: number;
  /** All of them can go on elsewhere unseen: an exec keeps its client where it is. */
  readonly isMovable: boolean;
};

export type Move<Client> = { readonly client: Client; readonly from: string; readonly to: string };

/** How many clients may be re-bound after `sinceMs`: 1 % of them a second, and what is left over counts next time. */
export function allowanceOf(clients: number, sinceMs: number): number {
  return (clients * limits.rebalanceShare * sinceMs) / 1000;
}

/**
 * At most `most` moves, each from the backend that has most too much to the one that has most too little, and none
 * that would leave the load less even than it is. `shares` are of the backends that take clients (slow-start.ts).
 */
export function planMoves<Client>(
  sitters: readonly Sitter<Client>[],
  shares: ReadonlyMap<string, number>,
  most: number,
): readonly Move<Client>[] {
  const excess = excessOf(sitters, shares);
  const [sum, slack] = [sumOf(sitters.map(({ load }) => load)), limits.rebalanceSlack];
  // Made for the first move: mostly there is none.
  let left: ReadonlyMap<string, ByLoad<Client>> | undefined;
  const moves: Move<Client>[] = [];
  while (moves.length < most) {
    const byExcess = Array.from(excess).toSorted(([, one], [, other]) => other - one);
    const [[from, over], [to, under]] = [byExcess.at(0) ?? ["", 0], byExcess.at(-1) ?? ["", 0]];
    const gap = Math.min(over, -under);
    if (gap <= (slack * sum) / Math.max(1, shares.size)) break;
    left ??= movable(sitters);
    const best = takeLargest(left.get(from), gap);
    if (best === undefined) break;
    excess.set(from, over - best.load);
    excess.set(to, under + best.load);
    moves.push({ client: best.client, from, to });
  }
  return moves;
}

/** By how many streams each backend has more than its part; less is negative. */
function excessOf(
  sitters: readonly Sitter<unknown>[],
  shares: ReadonlyMap<string, number>,
): Map<string, number> {
  const here = sitters.filter(({ backend }) => shares.has(backend));
  const perShare =
    sumOf(here.map(({ load }) => load)) / Math.max(sumOf([...shares.values()]), Number.EPSILON);
  const excess = new Map(Array.from(shares, ([name, share]) => [name, -share * perShare]));
  for (const { backend, load } of here) excess.set(backend, (excess.get(backend) ?? 0) + load);
  return excess;
}

/** Those that may be moved, by load; the last of each load goes first. */
type ByLoad<Client> = Map<number, Sitter<Client>[]>;

/** By backend. To look through all clients for each of 1 % of them takes a second when they are 50,000. */
function movable<Client>(sitters: readonly Sitter<Client>[]): ReadonlyMap<string, ByLoad<Client>> {
  const left = new Map<string, ByLoad<Client>>();
  for (const sitter of sitters.toReversed()) {
    const { backend, load, isMovable } = sitter;
    if (!isMovable || load <= 0) continue;
    const byLoad: ByLoad<Client> = left.get(backend) ?? new Map();
    left.set(backend, byLoad);
    const alike = byLoad.get(load) ?? [];
    byLoad.set(load, alike);
    alike.push(sitter);
  }
  return left;
}

/** The fewest moves: the largest client that fits into the gap. */
function takeLargest<Client>(left: ByLoad<Client> = new Map(), gap: number): Sitter<Client> | undefined {
  let most = 0;
  for (const [load, { length }] of left) if (length > 0 && load <= gap && load > most) most = load;
  return left.get(most)?.pop();
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
}
