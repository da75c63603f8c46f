/**
 * The proxy of a run: the real data path on simulated connections. src/main.ts builds the same path on real sockets.
 */
import { Failure } from "../../src/base/failure.ts";
import { type Entry, Journal } from "../../src/events/journal.ts";
import { DataPath, type PathOptions } from "../../src/proxy/cluster/data-path.ts";
import { Downstream } from "../../src/proxy/downstream/downstream.ts";
import { BufferLimiter } from "../../src/proxy/overload/buffer-limiter.ts";
import type { ClientPair } from "../../src/upstream/net/connect.ts";
import type { Wire, WireOwner } from "../../src/upstream/net/wire.ts";
import { clientOf } from "../support/client.ts";
import { checkExchanges } from "../support/exchange-invariants.ts";
import type { World } from "./world.ts";

/** One end of a simulated connection. */
export type Plug = Wire & { owner: WireOwner };

export type ProxyOptions = {
  readonly world: World;
  readonly backends: readonly string[];
  /** Returns a new connection to a backend, or undefined if the backend does not listen. */
  readonly dial: (backend: string, pair?: ClientPair) => Plug | undefined;
  readonly connections: { readonly streams: number; readonly warm: number };
  readonly isPerClient: boolean;
  /** How the proxy probes backends. Undefined: not at all. */
  readonly probes?: PathOptions["probes"] | undefined;
  /** Interval in ms of the checks of all exchanges and watches; default: after each step that could change one. */
  readonly checkMs?: number | undefined;
  readonly tell: (entry: Entry) => void;
  /** Called with an error that the data path threw, which is always a bug. */
  readonly thrown: (error: unknown) => void;
};

/** Far more than a run ever buffers. The tests in test/proxy/overload cover memory pressure. */
const bufferBytes = 1024 * 1024 * 1024;
const ping = { intervalMs: 250, suspectAfterMs: 500, deadAfterMs: 2_000, deadAfterWhenAllSilentMs: 10_000 };

export class SimulatedProxy {
  readonly path: DataPath;
  readonly journal: Journal;
  readonly entries: Entry[] = [];
  readonly downstreams = new Set<Downstream>();
  readonly #options: ProxyOptions;
  #clients = 0;
  #stopChecks = (): void => {};
  #stopCheckEach = (): void => {};

  constructor(options: ProxyOptions) {
    this.#options = options;
    const { world: clock, connections, isPerClient, probes } = options;
    const journal = new Journal(clock);
    this.journal = journal;
    journal.subscribe((entry) => {
      this.entries.push(entry);
      options.tell(entry);
    });
    const connect = (backend: string, owner: WireOwner): Wire => this.#dial(backend, owner);
    const bufferLimiter = new BufferLimiter(clock, bufferBytes);
    const shield = { isEnabled: true, queueMs: 15_000, exemptGroups: [] };
    const random = (): number => clock.fraction();
    const parts = { clock, journal, connections, isPerClient, ping, connect, bufferLimiter, shield, random };
    this.path = new DataPath(probes === undefined ? parts : { ...parts, probes });
    this.path.reconcile(options.backends);
    this.#check();
    if (options.checkMs === undefined) clock.onTurn = () => this.#checkWatches();
    else this.#checkEach(options.checkMs);
  }

  /** Checks all exchanges and watches every `ms`. With thousands of them, checks after each step would take hours. */
  #checkEach(ms: number): void {
    this.#stopCheckEach = this.#options.world.after(ms, () => {
      this.#guardedCheck();
      this.#checkWatches();
      this.#checkEach(ms);
    });
  }

  #guardedCheck(): void {
    try {
      checkExchanges(this.path.exchanges.live);
    } catch (error) {
      this.#options.thrown(error);
    }
  }

  /**
   * Checks the invariants of every watch session after each turn (watch-state.ts). Reports only the first violation.
   */
  #checkWatches(): void {
    for (const { watch, isEnded } of this.path.exchanges.live) {
      const broken = isEnded ? undefined : watch?.check();
      if (broken === undefined) continue;
      this.#options.world.onTurn = () => {};
      return this.#options.thrown(new Error(broken));
    }
  }

  /** Accepts a client's connection. */
  accept(end: Plug): void {
    this.#clients += 1;
    const client = clientOf({
      address: `10.0.0.${this.#clients % 250}`,
      port: 40_000 + this.#clients,
    });
    const downstream: Downstream = new Downstream(client, this.path, (owner) =>
      this.#guarded(end, owner, () => this.downstreams.delete(downstream)),
    );
    this.downstreams.add(downstream);
  }

  stop(): void {
    this.#stopChecks();
    this.#stopCheckEach();
    for (const downstream of this.downstreams) downstream.cut();
    this.path.reconcile([]);
  }

  #dial(backend: string, owner: WireOwner): Wire {
    const end = this.#options.dial(backend);
    if (end !== undefined) return this.#guarded(end, owner, () => {});
    const failure = new Failure("backend-refused", "backend", "connect ECONNREFUSED");
    this.#options.world.after(1, () => owner.closed(failure));
    return { write: () => true, end() {}, destroy() {} };
  }

  #guarded(end: Plug, owner: WireOwner, onClose: () => void): Wire {
    const { checkMs, thrown } = this.#options;
    const check = checkMs === undefined ? () => checkExchanges(this.path.exchanges.live) : () => {};
    return guardedWire(end, owner, { onClose, check, thrown });
  }

  #check(): void {
    for (const downstream of this.downstreams) downstream.check();
    this.#stopChecks = this.#options.world.after(1_000, () => this.#check());
  }
}

type Guard = {
  readonly onClose: () => void;
  /** Called after each callback of the owner. */
  readonly check: () => void;
  readonly thrown: (error: unknown) => void;
};

/** Returns the wire of an owner. Closes a connection whose owner throws, as socket.ts does, and reports the error. */
export function guardedWire(end: Plug, owner: WireOwner, { onClose, check, thrown }: Guard): Wire {
  const guarded = (work: () => void): void => {
    try {
      work();
      check();
    } catch (error) {
      thrown(error);
      end.destroy();
    }
  };
  end.owner = {
    receive: (chunk) => guarded(() => owner.receive(chunk)),
    drained: () => guarded(() => owner.drained()),
    closed: (failure) => {
      onClose();
      guarded(() => owner.closed(failure));
    },
  };
  return end;
}
