import type { Urgency } from "../../ops/ledger/urgency.ts";
import type { WatchSession } from "../session/watch-session.ts";

const urgencies: readonly Urgency[] = [0, 1, 2];

/**
 * The queue of watches without a stream: the control plane's watches, then those of nodes, then all others. Within a
 * class, watches keep the order in which they were added.
 */
export class MoveQueue {
  /** One map for each urgency. The value is true if the watch has already waited for a backend. */
  readonly #watches: readonly Map<WatchSession, boolean>[] = urgencies.map(() => new Map());

  get size(): number {
    return this.#watches.reduce((sum, { size }) => sum + size, 0);
  }

  add(watch: WatchSession, hasWaited: boolean): void {
    this.#watches[watch.clientRequest.caller.urgency]?.set(watch, hasWaited);
  }

  /**
   * Removes a watch from the queue, even if its urgency has changed. Returns true if the watch had already waited for
   * a backend before it was queued; undefined if it is not in the queue.
   */
  take(watch: WatchSession): boolean | undefined {
    for (const watches of this.#watches) {
      const hasWaited = watches.get(watch);
      if (hasWaited !== undefined && watches.delete(watch)) return hasWaited;
    }
    return undefined;
  }

  /**
   * Returns the watches whose urgency class may move now. Calls `isOpen` before each watch, because each move uses up
   * part of the rate.
   */
  *movable(isOpen: (urgency: Urgency) => boolean): Iterable<readonly [WatchSession, Urgency]> {
    for (const urgency of urgencies)
      for (const watch of this.#watches[urgency]?.keys() ?? []) {
        if (!isOpen(urgency)) break;
        yield [watch, urgency];
      }
  }
}
