/**
 * All backends silent for 1.5 to 9 s, as when the proxy's own network is away (D14): nothing is lost, all of it is late. What
 * was under way comes with its kernel's next retransmission; new sockets, with their next SYN.
 */
import type { ProbeListener } from "../../src/health/prober.ts";
import type { PathOptions } from "../../src/proxy/cluster/data-path.ts";
import type { End } from "./network.ts";
import type { Random } from "./random.ts";
import type { World } from "./world.ts";

/** Linux' first retransmission; each later one waits twice as long (RFC 6298). SYN is sent again every second. */
const firstRetryMs = 200;
const synMs = 1_000;
/** Within this a PING is written on every session, which is not acknowledged. */
const pingMs = 250;

export class Silence {
  readonly #world: World;
  readonly #random: Random;
  /** A clock reading; 0 before it begins. */
  until = 0;
  /** When the last of what it held back arrives: a clock reading. */
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

  /** True if it is over, and all that it held back has arrived. */
  get isOver(): boolean {
    const now = this.#world.now();
    return this.until > 0 && now > this.until && now > this.arrivedAt;
  }

  /** `ends`: those of the backends. */
  begin(ends: readonly End[]): void {
    const now = this.#world.now();
    this.until = now + this.#random.whole(1_500, 9_000);
    for (const end of ends) {
      // Neither direction goes on without the other: a handshake that was under way takes both.
      const at = this.#retransmittedAt(now);
      end.hold(at);
      end.peer?.hold(at);
      this.arrivedAt = Math.max(this.arrivedAt, at);
    }
  }

  /** `end`: the backend's, of a connection that was dialled now. */
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

  /** When the SYN of a socket that is dialled now arrives. */
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
