/**
 * A silence of all backends for 1.5 to 9 s, as when the proxy's own network fails (D14). Nothing is lost, but
 * everything is late. Bytes in flight arrive with the next retransmission of their sender, and new connections open
 * with their next SYN.
 */
import type { ProbeListener } from "../../src/health/prober.ts";
import type { PathOptions } from "../../src/proxy/cluster/data-path.ts";
import type { End } from "./network.ts";
import type { Random } from "./random.ts";
import type { World } from "./world.ts";

/**
 * `firstRetryMs` is Linux' first retransmission timeout, which doubles each time (RFC 6298). `synMs` is the time
 * between two SYNs.
 */
const firstRetryMs = 200;
const synMs = 1_000;
/** Within this time the proxy sends a PING on every session, so each connection has unacknowledged bytes. */
const pingMs = 250;

export class Silence {
  readonly #world: World;
  readonly #random: Random;
  /** The end of the silence, as a clock reading. 0 before the silence begins. */
  until = 0;
  /** The time at which the last held-back bytes arrive, as a clock reading. */
  arrivedAt = 0;
  readonly probes: PathOptions["probes"];

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
    this.probes = {
      probe: (_name, ear) => this.#probe(ear),
      times: { intervalMs: 1_000, timeoutMs: 3_000 },
      random: () => random.next(),
    };
  }

  /** True if the silence is over and all held-back bytes have arrived. */
  get isOver(): boolean {
    const now = this.#world.now();
    return this.until > 0 && now > this.until && now > this.arrivedAt;
  }

  /** Begins the silence. `ends` are the backends' ends of all upstream connections. */
  begin(ends: readonly End[]): void {
    const now = this.#world.now();
    this.until = now + this.#random.whole(1_500, 9_000);
    for (const end of ends) {
      // Both directions resume at the same time, because a handshake in progress needs both.
      const at = this.#retransmittedAt(now);
      end.hold(at);
      end.peer?.hold(at);
      this.arrivedAt = Math.max(this.arrivedAt, at);
    }
  }

  /** Delays a new connection until its SYN arrives. `end` is the backend's end. */
  dialled(end: End): void {
    const at = this.#connectedAt();
    if (at <= this.#world.now()) return;
    end.hold(at);
    end.peer?.hold(at);
  }

  #retransmittedAt(now: number): number {
    const sentAt = now + this.#random.next() * pingMs;
    let waitMs = firstRetryMs;
    while (sentAt + waitMs < this.until) waitMs = 2 * waitMs + firstRetryMs;
    return sentAt + waitMs;
  }

  /** The time at which the SYN of a connection that is dialled now arrives. */
  #connectedAt(): number {
    const now = this.#world.now();
    return now + Math.max(0, Math.ceil((this.until - now) / synMs)) * synMs;
  }

  #probe(ear: ProbeListener): () => void {
    const rttMs = 1;
    const world = this.#world;
    let stop = world.at(this.#connectedAt() + rttMs, () => {
      ear.dialed("answer", "");
      stop = world.at(this.#connectedAt() + rttMs, () => ear.answered("ready", "ok"));
    });
    return () => stop();
  }
}
