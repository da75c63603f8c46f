/**
 * Plans which clients are bound to another backend, so that the load is even again after a restart (F16). Pure: from the
 * clients' open streams and the backends' shares it returns a few moves, which balance.ts makes.
 */
import { limits } from "../../base/limits.ts";

/** What is known of one client. */
export type Sitter<Client> = {
  readonly client: Client;
  readonly backend: string;
  /** The number of its open streams. */
  readonly load: number;
  /** True if all of them can continue on another backend unnoticed. An exec keeps its client where it is. */
  readonly isMovable: boolean;
};

export type Move<Client> = { readonly client: Client; readonly from: string; readonly to: string };

/** The number of clients that may be re-bound after `sinceMs`: 1 % of them a second. Fractions carry over. */
export function allowanceOf(clients: number, sinceMs: number): number {
  return (clients * limits.rebalanceShare * sinceMs) / 1000;
}

/**
 * Returns at most `most` moves, each from the most overloaded backend to the most underloaded one, and none that would
 * make the load less even. `shares` are of the backends that take clients (slow-start.ts).
 */
export function planMoves<Client>(
  sitters: readonly Sitter<Client>[],
  shares: ReadonlyMap<string, number>,
  most: number,
): readonly Move<Client>[] {
  const excess = excessOf(sitters, shares);
  const [sum, slack] = [sumOf(sitters.map(({ load }) => load)), limits.rebalanceSlack];
  // Created at the first move: mostly there is none.
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

/** Returns by how many streams each backend exceeds its share; negative if it has fewer. */
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

/** Movable clients, by load; the last of each load goes first. */
type ByLoad<Client> = Map<number, Sitter<Client>[]>;

/** Indexed by backend: searching all clients for each of 1 % of them takes a second with 50,000 clients. */
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

/** Takes the largest client that fits into the gap, for the fewest moves. */
function takeLargest<Client>(left: ByLoad<Client> = new Map(), gap: number): Sitter<Client> | undefined {
  let most = 0;
  for (const [load, { length }] of left) if (length > 0 && load <= gap && load > most) most = load;
  return left.get(most)?.pop();
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
}
