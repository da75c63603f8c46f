/** A socket as the request path uses it. `socket.ts` makes a Wire of a real socket; the simulation has its own. */
import type { Failure } from "../../base/failure.ts";

export type Wire = {
  /**
   * Writes in order. Returns false if more than `limits.socketBacklogBytes` wait to be sent; `drained` is then called
   * later. `written` is called when the buffers may be used again, but not if the wire breaks before that.
   */
  write(buffers: readonly Buffer[], written?: () => void): boolean;
  /** Number of written bytes that the kernel has not taken yet; undefined: the wire does not count them. */
  readonly waitingBytes?: number;
  /** The IP address of the peer; undefined: unknown, or the wire is not connected. */
  readonly remoteAddress?: string | undefined;
  /** Closes the wire after everything that was written. */
  end(): void;
  /** Closes the wire at once, and discards the bytes that wait. */
  destroy(): void;
};

export type WireOwner = {
  /** The chunk is valid during the call only: the owner must copy what it keeps. */
  receive(chunk: Buffer): void;
  drained(): void;
  /** Called when either side has ended the wire. May be called a second time, when the socket is closed. */
  closed(failure: Failure | undefined): void;
};
