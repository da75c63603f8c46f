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
 * A tunnel is stuck if the socket to its backend shows this many retransmissions in `hungLooks` checks in a row. Four
 * retransmissions take 3.0 s, so a shorter outage ends no tunnel. Retransmissions begin only when something is sent: if
 * an outage begins 5 s before kubectl's next ping, the exec ends within 10 s of the outage's start.
 */
export const hungRetransmits = 4;
/**
 * Replaces `hungRetransmits` while the path to the backend loses packets. Six retransmissions take 12.6 s. If 20 % of
 * the packets are lost in each direction, five transmissions in a row fail once in 165 times, and seven once in 1,280
 * times.
 */
export const hungLossyRetransmits = 6;
/** Ms for which the path to a backend counts as lossy after a tunnel's bytes got through only by a retransmission. */
export const lossyPathMs = 30_000;
/**
 * A tunnel is also stuck if the socket to its client shows this many retransmissions, which take about 51 s. The number
 * is larger than for backends, because a client's network may fail for a while.
 */
export const hungClientRetransmits = 8;
export const hungLooks = 2;

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
  /** Number of retransmissions that the latest check has found at the socket to the backend. */
  tries: number;
};

export class HungTunnels {
  readonly #parts: HungTunnelsParts;
  readonly #watched = new Set<WatchedTunnel>();
  /** Clock reading until which the path to a backend counts as lossy, by the backend's address (`peerOf`). */
  readonly #lossyUntil = new Map<string, number>();
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
    const watched = { keys, isWell, run, looks: 0, excused: 0, tries: 0 };
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
   * to have got through, so a stuck socket would be found later, and the path to the backend would count as lossy.
   */
  #look(counts: ReadonlyMap<string, number> | undefined): void {
    this.#stop = undefined;
    if (counts !== undefined) this.#judge(counts);
    this.#wait();
  }

  #judge(counts: ReadonlyMap<string, number>): void {
    const now = this.#parts.clock.now();
    for (const watched of this.#watched) this.#noteLoss(watched, counts, now);
    for (const [peer, until] of this.#lossyUntil) if (until <= now) this.#lossyUntil.delete(peer);
    for (const watched of Array.from(this.#watched)) {
      const least = this.#lossyUntil.has(peerOf(watched)) ? hungLossyRetransmits : hungRetransmits;
      watched.looks = isStuck(watched, counts, least) ? watched.looks + 1 : 0;
      if (watched.looks < hungLooks) continue;
      this.#watched.delete(watched);
      watched.run();
    }
  }

  /**
   * Notes that the path to the tunnel's backend loses packets: bytes that were retransmitted at the latest check have
   * got through. After a silence of the whole backend, this shows no loss.
   */
  #noteLoss(watched: WatchedTunnel, counts: ReadonlyMap<string, number>, now: number): void {
    const tries = counts.get(watched.keys.up) ?? 0;
    if (tries < watched.tries && watched.isWell() && watched.excused === 0)
      this.#lossyUntil.set(peerOf(watched), now + lossyPathMs);
    watched.tries = tries;
  }
}

/** Returns the backend's port and address, which are the last part of the socket's key. */
function peerOf({ keys: { up } }: WatchedTunnel): string {
  return up.slice(up.indexOf("-") + 1);
}

/**
 * After a silence of the whole backend has ended, this many more retransmissions show that the socket itself is stuck.
 * A single one may be chance.
 */
const triesAfterHole = 2;

/**
 * True if one of the tunnel's sockets is stuck. For the client, only its own socket is considered, because nothing else
 * shows whether the client still exists. `retransmits`: the number that shows a stuck socket to the backend.
 */
function isStuck(watched: WatchedTunnel, counts: ReadonlyMap<string, number>, retransmits: number): boolean {
  if ((counts.get(watched.keys.down) ?? 0) >= hungClientRetransmits) return true;
  const tries = counts.get(watched.keys.up) ?? 0;
  if (!watched.isWell() || tries < watched.excused) watched.excused = watched.isWell() ? 0 : tries;
  const least = watched.excused === 0 ? 0 : watched.excused + triesAfterHole;
  return watched.isWell() && tries >= Math.max(retransmits, least);
}
