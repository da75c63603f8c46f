/**
 * Everything between a listener and the backends, wired: health, lanes, trust and serve. What it is given decides
 * where it runs: real sockets and time (main.ts), or virtual ones (tests and the simulation).
 */
import type { Clock } from "../clock.ts";
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
  readonly exchanges = new Exchanges();
  readonly trust: Trust;
  readonly backends: Backends;
  readonly upstreams: Upstreams;
  readonly serve: Serve;

  constructor(options: PathOptions) {
    const { clock, journal, connect, lanes, ping, sharing } = options;
    const turn = new Turn(clock);
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
        journal,
        ping,
        learn: learnOf(backend),
        connect: (owner) => connect(backend, owner),
      });
    const upstreams = new Upstreams({ lanesFor, sharing });
    this.clock = clock;
    this.journal = journal;
    this.turn = turn;
    this.trust = trust;
    this.backends = backends;
    this.upstreams = upstreams;
    this.serve = createServe({ clock, journal, backends, upstreams, trust, exchanges: this.exchanges });
  }

  /** Backends come and go; those that stay are not touched. */
  reconcile(names: readonly string[]): void {
    this.backends.reconcile(names);
    this.upstreams.reconcile(names);
  }
}
