/** The connections of one backend, trust class and kind, and the attempts that wait for one of them. */
import type { Clock } from "../../base/clock.ts";
import type { Failure } from "../../base/failure.ts";
import { inSlices } from "../../base/slices.ts";
import type { Connection } from "./connection.ts";
import { upstreamLimits } from "./limits.ts";
import type { PoolKey } from "./pool-key.ts";

/** An attempt that waits for a connection: exactly one of `ready` and `refused` is called. None of these throws. */
export type Waiter = {
  /** The shard that it waits in. */
  readonly key: PoolKey;
  /** Returns its key, updated: a credential may be proven while it waits. */
  rekey(): PoolKey;
  ready(connection: Connection): void;
  /** The wait is long, or in vain: it may move to another backend. Called again at every tick. */
  suspected(): void;
  refused(failure: Failure): void;
};

export type Shard = {
  readonly key: PoolKey;
  readonly connections: Connection[];
  /** With the time since when each waits. */
  readonly waiting: Map<Waiter, number>;
};

/**
 * Refuses everything that waits here, in slices: each waiter goes to another backend at once, or is answered. Skips those
 * that have got a connection meanwhile, or whose client has gone.
 */
export function refuse({ waiting }: Shard, failure: Failure, clock: Clock): void {
  inSlices(clock, Array.from(waiting.keys()), (waiter) => {
    if (waiting.delete(waiter)) waiter.refused(failure);
  });
}

/** True if a connection with the old certificate still takes requests. */
export function hasOutdated({ connections }: Shard): boolean {
  return connections.some(({ isOutdated, isRetiring }) => isOutdated && !isRetiring);
}

/** A connection with the new certificate is open: the old ones take no new streams, and open streams continue. */
export function retireOutdated({ connections }: Shard): void {
  for (const connection of connections.filter(({ isOutdated }) => isOutdated)) connection.yield();
}

/**
 * Returns the idle connections that close now, and whether the shard needs a successor first. Connections beyond `keep`
 * warm ones, and beyond the last one, close soon. The last connection of a shard that is not kept warm closes after a
 * minute. A warm connection gets a successor before it closes: an apiserver ends a session after 90 s without a stream,
 * PING or not, and if all of them ended at once, the backend would look as if it were draining.
 */
export function idleIn(
  { connections }: Shard,
  keep: number,
  now: number,
): { readonly isWanting: boolean; readonly going: readonly Connection[] } {
  // Silent connections do not count: closing the one that answers would leave no proof that the backend lives.
  const taking = connections.filter(
    (connection) => connection.isOpened && !connection.isRetiring && !connection.isSuspect,
  );
  const idleFor = (ms: number): Connection[] =>
    taking.filter((connection) => connection.openCount === 0 && now - connection.idleSince > ms);
  const spare = idleFor(upstreamLimits.spareConnectionMs).slice(
    0,
    Math.max(0, taking.length - Math.max(1, keep)),
  );
  const old = idleFor(upstreamLimits.idleConnectionMs);
  return {
    isWanting: old.length > 0 && taking.length <= keep,
    going: spare.length === 0 && keep === 0 ? old : spare,
  };
}
