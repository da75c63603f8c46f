/**
 * Everything between a listener and the backends, wired: health, lanes, trust and serve. What it is given decides
 * where it runs: real sockets and time (main.ts), or virtual ones (tests and the simulation).
 */
import type { Clock } from "../clock.ts";
import { Buffered } from "../h2/buffered.ts";
import { Turn } from "../h2/turn.ts";
import { Backends } from "../health/backends.ts";
import type { Journal } from "../journal.ts";
import { Exchanges } from "./exchanges.ts";
import { Lanes } from "./lanes.ts";
import { createServe, type Serve } from "./serve.ts";
import { Trust } from "./trust.ts";
import { Upstreams } from "./upstreams.ts";
import type { Wire, WireOwner } from "./wire.ts";

export type PathOptions = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Opens a wire to a backend, by its name. */
  readonly connect: (backend: string, owner: WireOwner) => Wire;
  readonly lanes: { readonly streams: number; readonly warm: number };
  readonly sharing: "lanes" | "none";
  /** Octets that may wait in this process altogether. */
  readonly bufferBytes: number;
  readonly ping: {
    readonly intervalMs: number;
    readonly suspectAfterMs: number;
    readonly deadAfterMs: number;
  };
};

export class Path {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly turn: Turn;
  readonly buffered: Buffered;
  readonly exchanges = new Exchanges();
  readonly trust: Trust;
  readonly backends: Backends;
  readonly upstreams: Upstreams;
  readonly serve: Serve;
  #isRelieving = false;

  constructor(options: PathOptions) {
    const { clock, journal, connect, lanes, ping, sharing } = options;
    const turn = new Turn(clock);
    const buffered = new Buffered(options.bufferBytes);
    const trust = new Trust(clock);
    const backends = new Backends([], { clock, journal });
    const learnOf = (backend: string) => (evidence: Parameters<Backends["learn"]>[1]) =>
      backends.learn(backend, evidence);
    const lanesFor = (backend: string): Lanes =>
      new Lanes({
        ...lanes,
        backend,
        clock,
        turn,
        buffered,
        journal,
        ping,
        learn: learnOf(backend),
        connect: (owner) => connect(backend, owner),
      });
    const upstreams = new Upstreams({ lanesFor, sharing });
    this.clock = clock;
    this.journal = journal;
    this.turn = turn;
    this.buffered = buffered;
    buffered.onOver = () => this.#relieve();
    this.trust = trust;
    this.backends = backends;
    this.upstreams = upstreams;
    this.serve = createServe({
      buffered,
      clock,
      journal,
      backends,
      upstreams,
      trust,
      exchanges: this.exchanges,
    });
  }

  /** Backends come and go; those that stay are not touched. */
  reconcile(names: readonly string[]): void {
    this.backends.reconcile(names);
    this.upstreams.reconcile(names);
  }

  /** Too much waits: the exchanges that hold the most of it end, largest first, in the turn in which it is noticed. */
  #relieve(): void {
    if (this.#isRelieving) return;
    this.#isRelieving = true;
    this.clock.soon(() => {
      this.#isRelieving = false;
      for (const exchange of this.exchanges.holders) {
        if (!this.buffered.isOver) return;
        const { queuedBytes } = exchange;
        const message = `Too much waits in this process: ${queuedBytes} bytes of it for one exchange`;
        const { auditId } = exchange.order;
        this.journal.write({ kind: "exchange.failed", code: "overload", origin: "proxy", message, auditId });
        exchange.cut();
      }
    });
  }
}
