/**
 * Tunnels whose own connection is in a hole while their backend is well. Nobody sends them a PING, and the kernel's
 * keepalive is quiet while anything is unacknowledged; what it sends again and again is told by its own table (D6).
 * Looked at once a second, and only while there are tunnels. A hole that is not the tunnel's alone is none of this file's
 * business: while its backend is silent, the backend's verdict decides.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";

export type HungTunnelsParts = {
  readonly clock: Clock;
  /** How often each socket's oldest octets have been sent again, by its key; those that were not are left out. */
  readonly read: () => Promise<ReadonlyMap<string, number>>;
};

/** Calls once when one of these sockets gets nothing through any more, and returns its undoing. */
export type OnHung = (
  tunnel: { readonly down: Socket; readonly up: Socket; readonly backend: string },
  run: () => void,
) => () => void;

/** A tunnel's two sockets, each by its key. */
export type TunnelKeys = { readonly down: string; readonly up: string };

type Watched = {
  readonly keys: TunnelKeys;
  readonly isWell: () => boolean;
  readonly run: () => void;
  looks: number;
  /** Tries of the backend's socket that failed while the backend was silent as a whole: they prove nothing. */
  excused: number;
};

export class HungTunnels {
  readonly #parts: HungTunnelsParts;
  readonly #watched = new Set<Watched>();
  #stop: (() => void) | undefined;

  constructor(parts: HungTunnelsParts) {
    this.#parts = parts;
  }

  /**
   * Calls once when one of these sockets gets nothing through any more; returns its undoing. `isWell`: does the backend
   * answer on other connections?
   */
  watch(keys: TunnelKeys, isWell: () => boolean, run: () => void): () => void {
    const watched = { keys, isWell, run, looks: 0, excused: 0 };
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
      watched.looks = isStuck(watched, counts) ? watched.looks + 1 : 0;
      if (watched.looks < limits.hungLooks) continue;
      this.#watched.delete(watched);
      watched.run();
    }
    this.#wait();
  }
}

/** After a hole of all, one more try that failed may have been lost by chance; two are a hole of this socket's own. */
const triesAfterHole = 2;

/** Nothing proves that a client is well but its own socket: it has the time that a kernel gives a short outage (D14). */
function isStuck(watched: Watched, counts: ReadonlyMap<string, number>): boolean {
  if ((counts.get(watched.keys.down) ?? 0) >= limits.hungClientRetransmits) return true;
  const tries = counts.get(watched.keys.up) ?? 0;
  if (!watched.isWell() || tries < watched.excused) watched.excused = watched.isWell() ? 0 : tries;
  const least = watched.excused === 0 ? 0 : watched.excused + triesAfterHole;
  return watched.isWell() && tries >= Math.max(limits.hungRetransmits, least);
}
