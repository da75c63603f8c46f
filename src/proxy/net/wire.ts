/**
 * A socket as the path sees it. `socket.ts` makes one of a TLS or TCP socket; the simulation has its own. Nothing
 * else of a socket is known to sessions, upstream connections and exchanges.
 */
import type { Failure } from "../../base/failure.ts";

export type Wire = {
  /**
   * Writes in order. False: more than limits.socketBacklogBytes wait, and `drained` will be told. `written` is called when
   * the buffers are no longer read, and may be used again; never when the wire breaks before.
   */
  write(buffers: readonly Buffer[], written?: () => void): boolean;
  /** Octets written that the kernel has not taken yet; undefined where nobody counts them. */
  readonly waitingBytes?: number;
  /** Ends after what was written. */
  end(): void;
  /** Drops it at once, with whatever waits. */
  destroy(): void;
};

export type WireOwner = {
  /** The chunk is lent for the call: what is to stay has to be copied. */
  receive(chunk: Buffer): void;
  drained(): void;
  /** Told once, whoever ended it. */
  closed(failure: Failure | undefined): void;
};
