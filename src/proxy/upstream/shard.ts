/** Upstream connections of one backend, trust class and kind, and who waits for one of them. */
import type { Clock } from "../../base/clock.ts";
import type { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { inSlices } from "../../base/slices.ts";
import type { Connection } from "./connection.ts";
import type { PoolKey } from "./pool-key.ts";

/** Someone who waits for an upstream connection: told exactly one of `ready` and `refused`. None of these throws. */
export type Waiter = {
  /** Where it waits. */
  key: PoolKey;
  /** Which upstream connections it may use by now: a credential may be proven while it waits. */
  wanted(): PoolKey;
  ready(connection: Connection): void;
  /** The wait is long, or in vain: it may go elsewhere. Told again at every tick. */
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
 * Refuses all that wait here, a slice at a time: each goes to another backend at once, or is answered. One that is handed an
 * upstream connection meanwhile, or whose client has gone, is left out.
 */
export function refuse({ waiting }: Shard, failure: Failure, clock: Clock): void {
  inSlices(clock, Array.from(waiting.keys()), (waiter) => {
    if (waiting.delete(waiter)) waiter.refused(failure);
  });
}

/** The certificate that its upstream connections show was replaced. Is any upstream connection concerned? */
export function outdate({ connections }: Shard): boolean {
  for (const connection of connections) connection.isOutdated = true;
  return connections.length > 0;
}

/** Do any still take requests under the old certificate? */
export function hasOutdated({ connections }: Shard): boolean {
  return connections.some(({ isOutdated, isRetiring }) => isOutdated && !isRetiring);
}

/** An upstream connection with the new one is open. What is on the old ones lives on; nothing new joins it. */
export function retireOutdated({ connections }: Shard): void {
  for (const connection of connections.filter(({ isOutdated }) => isOutdated)) connection.yield();
}

/**
 * Returns the idle upstream connections that close now, and whether the row needs a successor first. Upstream connections beyond `keep` warm ones, and
 * beyond the last one, close soon; the last upstream connection of a row that is not kept warm closes after a minute. A warm upstream connection gets a
 * successor before it closes: an apiserver ends a session after 90 s without a stream, PING or not, and if all of them
 * ended at once, the backend would look as if it were leaving.
 */
export function idleIn(
  { connections }: Shard,
  keep: number,
  now: number,
): { readonly isWanting: boolean; readonly going: readonly Connection[] } {
  // A silent upstream connection is no reason to close the one that answers: it would take its backend's last word with it.
  const taking = connections.filter(
    (connection) => connection.isOpened && !connection.isRetiring && !connection.isSuspect,
  );
  const idleFor = (ms: number): Connection[] =>
    taking.filter((connection) => connection.openCount === 0 && now - connection.idleSince > ms);
  const spare = idleFor(limits.spareConnectionMs).slice(0, Math.max(0, taking.length - Math.max(1, keep)));
  const old = idleFor(limits.idleConnectionMs);
  return {
    isWanting: old.length > 0 && taking.length <= keep,
    going: spare.length === 0 && keep === 0 ? old : spare,
  };
}
