/** What a watch may do to the exchange that it is. */
import type { Side } from "../../h2/core/side.ts";
import type { RequestContext } from "../../proxy/context/request-context.ts";
import type { PoolKey } from "../../proxy/upstream/pool-key.ts";

export type WatchHost = {
  readonly context: RequestContext;
  readonly down: Side;
  poolKey(): PoolKey;
  /** A backend answered a resume with this status. */
  learnt(status: number): void;
  /** The watch goes on there. */
  goesOn(backend: string): void;
  /** END_STREAM between two events; the server's own, when `isWhole`. */
  endsHere(isWhole: boolean): void;
  /** Bytes that nobody understood broke off. */
  breaksOff(): void;
  /** A fault of ours, in telling one of its legs. */
  attemptFaulted(error: unknown): void;
};
