/**
 * Finds tunnels with a stuck connection to a backend that answers, or to a client. The proxy cannot send PINGs inside
 * tunnels, and the kernel's keepalive sends nothing while a byte is unacknowledged. But the kernel's socket table shows
 * retransmissions (D6). While there are tunnels, the proxy reads this table once a second. If all connections to a
 * backend are silent, the backend's health state decides, not the table. On a system without this table, the proxy ends
 * no tunnel for a stuck connection, and the kernel's own timeouts apply.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { isSilent } from "../../health/backend.ts";
import type { Backends } from "../../health/backends.ts";
import { keyOf } from "../../health/probes/retransmissions.ts";

export const socketTableMs = 1000;
/**
 * A tunnel is stuck if the socket to its backend shows this many retransmissions in `hungLooks` checks in a row. Seven
 * retransmissions take 25.4 s, so the tunnel is kept for 30 s, as TCP alone would: an outage of 15 s ends no tunnel, and
 * seven in a row fail by chance once in 1,280 times if 20 % of the packets are lost in each direction.
 */
export const hungRetransmits = 7;
/**
 * A tunnel is also stuck if the socket to its client shows this many retransmissions, which take about 51 s. The number
 * is larger than for backends, because a client's network may fail for a while.
 */
export const hungClientRetransmits = 8;
export const hungLooks = 6;

export type HungTunnelsParts = {
  readonly clock: Clock;
  readonly backends: Pick<Backends, "factsOf" | "onLost">;
  /**
   * Returns how many times the oldest bytes of each socket were retransmitted, by the socket's key. A socket without an
   * entry has had no retransmissions. Returns undefined if the numbers are unknown.
   */
  readonly read: () => Promise<ReadonlyMap<string, number> | undefined>;
};

export type WatchTunnel = HungTunnels["watchTunnel"];

/** The keys of a tunnel's two sockets in the kernel's socket table. */
export type TunnelKeys = { readonly down: string; readonly up: string };

type WatchedTunnel = {
  readonly keys: TunnelKeys;
  readonly isWell: () => boolean;
  readonly run: () => void;
  looks: number;
  /**
   * Number of retransmissions that happened while all connections to the backend were silent. They prove nothing about
   * this socket alone.
   */
  excused: number;
};

export class HungTunnels {
  readonly #parts: HungTunnelsParts;
  readonly #watched = new Set<WatchedTunnel>();
  #stop: (() => void) | undefined;

  constructor(parts: HungTunnelsParts) {
    this.#parts = parts;
  }

  /** Calls `cut` once, when the backend is dead or a socket is stuck. Returns a function that ends the checks. */
  watchTunnel(
    { down, up, backend }: { readonly down: Socket; readonly up: Socket; readonly backend: string },
    cut: (reason: "backend_dead" | "connection_stuck") => void,
  ): () => void {
    const { backends } = this.#parts;
    const isWell = (): boolean => !isSilent(backends.factsOf(backend));
    const keys = { down: keyOf(down), up: keyOf(up) };
    const stopWatching = this.watch(keys, isWell, () => cut("connection_stuck"));
    const stopLost = backends.onLost(backend, () => cut("backend_dead"));
    return () => {
      stopWatching();
      stopLost();
    };
  }

  /**
   * Calls `run` once, when one of the sockets is stuck. Returns a function that ends the checks. `isWell`: true if the
   * backend answers on other connections.
   */
  watch(keys: TunnelKeys, isWell: () => boolean, run: () => void): () => void {
    const watched = { keys, isWell, run, looks: 0, excused: 0 };
    this.#watched.add(watched);
    this.#wait();
    return () => this.#watched.delete(watched);
  }

  #wait(): void {
    if (this.#stop !== undefined || this.#watched.size === 0) return;
    this.#stop = this.#parts.clock.after(socketTableMs, () => {
      this.#parts.read().then(
        (counts) => this.#look(counts),
        () => this.#look(undefined),
      );
    });
  }

  /**
   * Unknown numbers (`undefined`) change nothing. If they counted as 0, bytes that are being retransmitted would seem
   * to have got through, so a stuck socket would be found later.
   */
  #look(counts: ReadonlyMap<string, number> | undefined): void {
    this.#stop = undefined;
    if (counts !== undefined) this.#judge(counts);
    this.#wait();
  }

  #judge(counts: ReadonlyMap<string, number>): void {
    for (const watched of Array.from(this.#watched)) {
      watched.looks = isStuck(watched, counts) ? watched.looks + 1 : 0;
      if (watched.looks < hungLooks) continue;
      this.#watched.delete(watched);
      watched.run();
    }
  }
}

/**
 * After a silence of the whole backend has ended, this many more retransmissions show that the socket itself is stuck.
 * A single one may be chance.
 */
const triesAfterHole = 2;

/**
 * True if one of the tunnel's sockets is stuck. For the client, only its own socket is considered, because nothing else
 * shows whether the client still exists.
 */
function isStuck(watched: WatchedTunnel, counts: ReadonlyMap<string, number>): boolean {
  if ((counts.get(watched.keys.down) ?? 0) >= hungClientRetransmits) return true;
  const tries = counts.get(watched.keys.up) ?? 0;
  if (!watched.isWell() || tries < watched.excused) watched.excused = watched.isWell() ? 0 : tries;
  const least = watched.excused === 0 ? 0 : watched.excused + triesAfterHole;
  return watched.isWell() && tries >= Math.max(hungRetransmits, least);
}
