/**
 * A socket as the path sees it. `socket.ts` makes one of a TLS or TCP socket; the simulation has its own. Sessions,
 * upstream connections and exchanges know nothing else of a socket.
 */
import type { Failure } from "../../base/failure.ts";

export type Wire = {
  /**
   * Writes in order. False: more than limits.socketBacklogBytes wait, and `drained` will be called. `written` is called
   * when the buffers are no longer read and may be reused; never if the wire breaks before.
   */
  write(buffers: readonly Buffer[], written?: () => void): boolean;
  /** Bytes written that the kernel has not taken yet; undefined where they are not counted. */
  readonly waitingBytes?: number;
  /** Ends after what was written. */
  end(): void;
  /** Drops it at once, with everything that waits. */
  destroy(): void;
};

export type WireOwner = {
  /** The chunk is valid during the call only: what must stay has to be copied. */
  receive(chunk: Buffer): void;
  drained(): void;
  /** Called once, whichever side ended it. */
  closed(failure: Failure | undefined): void;
};
