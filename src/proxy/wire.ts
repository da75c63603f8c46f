/**
 * A socket as the path sees it. `socket.ts` makes one of a TLS or TCP socket; the simulation has its own. Nothing
 * else of a socket is known to sessions, lanes and exchanges.
 */
import type { Failure } from "../failure.ts";

export type Wire = {
  /** Writes in order. False: more than limits.socketBacklogBytes wait, and `drained` will be told. */
  write(buffers: readonly Buffer[]): boolean;
  /** Ends after what was written. */
  end(): void;
  /** Drops it at once, with whatever waits. */
  destroy(): void;
};

export type WireOwner = {
  receive(chunk: Buffer): void;
  drained(): void;
  /** Told once, whoever ended it. */
  closed(failure: Failure | undefined): void;
};
