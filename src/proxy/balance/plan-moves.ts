/** Plans which clients move to which backend, so that few moves make the load more even. No I/O. */
import { upstreamLimits } from "../../upstream/pool/limits.ts";
import { balanceLimits } from "./limits.ts";

export type ClientLoad<T> = {
  readonly client: T;
  readonly backend: string;
  readonly load: number;
  /** True if another backend can continue all of the client's streams unnoticed. False for a client with an exec. */
  readonly isMovable: boolean;
};

export type Move<T> = { readonly client: T; readonly from: string; readonly to: string };

/**
 * Adapts the shares so that clients stay in the proxy's own zone while the backends of this zone have little load. The
 * load per share in the own zone stays at or below `spillFloor` plus `spillRatio` times the load per share in other
 * zones. More load spills over to other zones. `PoolSet.weightOf`, which weights the backends for new clients, has the
 * same rule. So a client that was sent to another zone is not moved back at once.
 */
export function sharesByZone(
  loads: readonly Pick<ClientLoad<unknown>, "backend" | "load">[],
  shares: ReadonlyMap<string, number>,
  isNear: (backend: string) => boolean,
): ReadonlyMap<string, number> {
  const near = sumOf(Array.from(shares).map(([name, share]) => (isNear(name) ? share : 0)));
  const far = sumOf([...shares.values()]) - near;
  if (near === 0 || far === 0) return shares;
  const { spillRatio, spillFloor } = upstreamLimits;
  const load = sumOf(loads.filter(({ backend }) => shares.has(backend)).map((one) => one.load));
  const perFarShare = Math.max(0, (load - near * spillFloor) / (spillRatio * near + far));
  const perNearShare = (load - far * perFarShare) / near;
  return new Map(
    Array.from(shares, ([name, share]) => [name, share * (isNear(name) ? perNearShare : perFarShare)]),
  );
}

/**
 * Returns at most `most` moves. Each goes from the backend whose load exceeds its share most to the backend whose load
 * is furthest below its share. No move makes the load less even. If every client of a backend is too large to move, the
 * moves leave out this backend and balance the others. `shares`: for each backend that takes clients, its share of the
 * load (backend-shares.ts). `slack`: fraction of an even load by which a backend's load may deviate from it.
 */
export function planMoves<T>(
  loads: readonly ClientLoad<T>[],
  shares: ReadonlyMap<string, number>,
  most: number,
  slack: number = balanceLimits.restSlack,
): readonly Move<T>[] {
  const backends = backendLoads(loads, shares);
  // Computed only at the first move, because usually no move is needed.
  let left: ReadonlyMap<string, ByLoad<T>> | undefined;
  const moves: Move<T>[] = [];
  while (moves.length < most) {
    const widest = largestGap(backends);
    if (widest === undefined) break;
    const { from, to, gap } = widest;
    if (gap <= (slack * sumOf(backends.map(({ load }) => load))) / backends.length) break;
    left ??= movable(loads);
    const best = takeLargest(left.get(from.name), gap);
    if (best === undefined) {
      backends.splice(backends.indexOf(from), 1);
      continue;
    }
    from.load -= best.load;
    to.load += best.load;
    moves.push({ client: best.client, from: from.name, to: to.name });
  }
  return moves;
}

type BackendLoad = { readonly name: string; readonly share: number; load: number };

function backendLoads(
  loads: readonly ClientLoad<unknown>[],
  shares: ReadonlyMap<string, number>,
): BackendLoad[] {
  const backends = new Map(Array.from(shares, ([name, share]) => [name, { name, share, load: 0 }]));
  for (const { backend, load } of loads) {
    const one = backends.get(backend);
    if (one !== undefined) one.load += load;
  }
  return [...backends.values()];
}

/**
 * Returns the backend whose load exceeds its share most (`from`), and the backend whose load is furthest below its
 * share (`to`). `gap`: the load that may move from one to the other.
 */
function largestGap(
  backends: readonly BackendLoad[],
): { readonly from: BackendLoad; readonly to: BackendLoad; readonly gap: number } | undefined {
  const shares = Math.max(sumOf(backends.map(({ share }) => share)), Number.EPSILON);
  const perShare = sumOf(backends.map(({ load }) => load)) / shares;
  const excessOf = ({ load, share }: BackendLoad): number => load - share * perShare;
  const byExcess = backends.toSorted((one, other) => excessOf(other) - excessOf(one));
  const [from, to] = [byExcess.at(0), byExcess.at(-1)];
  if (from === undefined || to === undefined) return undefined;
  return { from, to, gap: Math.min(excessOf(from), -excessOf(to)) };
}

type ByLoad<T> = Map<number, ClientLoad<T>[]>;

/**
 * Clients that can move, grouped by backend and load. Searching an ungrouped list of 50,000 clients for each move would
 * take a second.
 */
function movable<T>(loads: readonly ClientLoad<T>[]): ReadonlyMap<string, ByLoad<T>> {
  const left = new Map<string, ByLoad<T>>();
  for (const one of loads.toReversed()) {
    const { backend, load, isMovable } = one;
    if (!isMovable || load <= 0) continue;
    const byLoad: ByLoad<T> = left.get(backend) ?? new Map();
    left.set(backend, byLoad);
    const alike = byLoad.get(load) ?? [];
    byLoad.set(load, alike);
    alike.push(one);
  }
  return left;
}

/**
 * Takes the client with the largest load that does not exceed the gap between the two backends, so that few clients
 * move.
 */
function takeLargest<T>(left: ByLoad<T> = new Map(), gap: number): ClientLoad<T> | undefined {
  let most = 0;
  for (const [load, { length }] of left) if (length > 0 && load <= gap && load > most) most = load;
  return left.get(most)?.pop();
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
}

/** Remembers clients that were moved. A moved client *rests*: it is not moved again for some time. */
export class Rests<T extends object> {
  #rests = new WeakMap<T, { readonly ms: number; readonly until: number }>();
  #backends = "";

  /**
   * If the set of ready backends has changed since the previous call, lets every client move again, because any of them
   * may have to.
   */
  among(backends: readonly string[]): void {
    const names = backends.toSorted().join();
    if (names !== this.#backends) this.#rests = new WeakMap();
    this.#backends = names;
  }

  moved(client: T, now: number): void {
    const last = this.#rests.get(client);
    const isOften = last !== undefined && now - last.until < balanceLimits.restMostMs;
    const ms = isOften ? Math.min(2 * last.ms, balanceLimits.restMostMs) : balanceLimits.restMs;
    this.#rests.set(client, { ms, until: now + ms });
  }

  isResting(client: T, now: number): boolean {
    return now < (this.#rests.get(client)?.until ?? 0);
  }
}
