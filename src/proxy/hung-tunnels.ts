/**
 * Tunnels whose own connection is in a hole while their backend is well. Nobody sends them a PING, and the kernel's
 * keepalive is quiet while anything is unacknowledged; what it sends again and again is told by its own table (D6).
 * Looked at once a second, and only while there are tunnels.
 */
import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";

export type HungTunnelsParts = {
  readonly clock: Clock;
  /** How often each socket's oldest octets have been sent again, by its key; those that were not are left out. */
  readonly read: () => Promise<ReadonlyMap<string, number>>;
};

type Watched = { readonly keys: readonly string[]; readonly run: () => void; looks: number };

export class HungTunnels {
  readonly #parts: HungTunnelsParts;
  readonly #watched = new Set<Watched>();
  #stop: (() => void) | undefined;

  constructor(parts: HungTunnelsParts) {
    this.#parts = parts;
  }

  /** Calls once when one of these sockets gets nothing through any more; returns its undoing. */
  watch(keys: readonly string[], run: () => void): () => void {
    const watched = { keys, run, looks: 0 };
    this.#watched.add(watched);
    this.#wait();
    return () => this.#watched.delete(watched);
  }

  #wait(): void {
    if (this.#stop !== undefined || this.#watched.size === 0) return;
    this.#stop = this.#parts.clock.after(limits.socketTableMs, () => {
      this.#parts.read().then(
        (counts) => this.#look(counts),
        () => this.#look(new Map()),
      );
    });
  }

  #look(counts: ReadonlyMap<string, number>): void {
    this.#stop = undefined;
    for (const watched of Array.from(this.#watched)) {
      const most = Math.max(0, ...watched.keys.map((key) => counts.get(key) ?? 0));
      watched.looks = most >= limits.hungRetransmits ? watched.looks + 1 : 0;
      if (watched.looks < limits.hungLooks) continue;
      this.#watched.delete(watched);
      watched.run();
    }
    this.#wait();
  }
}
