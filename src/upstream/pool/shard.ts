/**
 * The connections to one backend for one trust class and one kind of request, and the attempts that wait for such a
 * connection.
 */
import type { Clock } from "../../base/clock.ts";
import type { Failure } from "../../base/failure.ts";
import { inSlices } from "../../base/slices.ts";
import type { Connection } from "./connection.ts";
import { upstreamLimits } from "./limits.ts";
import type { PoolKey } from "./pool-key.ts";

/**
 * An attempt that waits for a connection. Exactly one of `ready` and `refused` is called, unless the attempt was
 * removed from the queue before. No method throws.
 */
export type Waiter = {
  readonly key: PoolKey;
  /**
   * Returns the key that applies now. The key changes if a backend accepts the request's credential while the attempt
   * waits.
   */
  rekey(): PoolKey;
  ready(connection: Connection): void;
  /**
   * Called at every tick once the wait has become long, or no connection can be expected. The attempt may then move to
   * another backend.
   */
  suspected(): void;
  refused(failure: Failure): void;
};

export type Shard = {
  readonly key: PoolKey;
  readonly connections: Connection[];
  /** Attempts that wait for a connection, each with the clock reading at which it began to wait. */
  readonly waiting: Map<Waiter, number>;
};

/**
 * Refuses all waiting attempts. Works in slices, because each refusal causes further work: the attempt's owner tries
 * another backend or answers the client.
 */
export function refuse({ waiting }: Shard, failure: Failure, clock: Clock): void {
  inSlices(clock, Array.from(waiting.keys()), (waiter) => {
    if (waiting.delete(waiter)) waiter.refused(failure);
  });
}

/** True if a connection with an old certificate of the proxy, or to an old address, still takes new requests. */
export function hasOutdated({ connections }: Shard): boolean {
  return connections.some(({ isOutdated, isRetiring }) => isOutdated && !isRetiring);
}

/** Stops new streams on outdated connections. Their open streams continue. */
export function retireOutdated({ connections }: Shard): void {
  for (const connection of connections.filter(({ isOutdated }) => isOutdated)) connection.yield();
}

/**
 * Returns the idle connections to close now (`going`), and whether the shard needs a new connection before more of them
 * can close (`isWanting`).
 *
 * Connections that exceed `keep` close after a short idle time; the shard's last connection stays. If `keep` is 0, even
 * the last connection closes after a minute. If `keep` is greater, a warm connection that has been idle for a minute is
 * replaced before it is closed. Otherwise an apiserver would end it after 90 s without a stream, and if the apiserver
 * ended all connections at once, it would look as if it were draining.
 */
export function idleIn(
  { connections }: Shard,
  keep: number,
  now: number,
): { readonly isWanting: boolean; readonly going: readonly Connection[] } {
  // Silent connections do not count towards `keep`. Otherwise the only connection that answers could be closed as a
  // surplus one, and nothing would show that the backend works.
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
