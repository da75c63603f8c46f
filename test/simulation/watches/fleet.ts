/**
 * A rolling restart of the scale model: all apiservers are restarted one after another, as in an upgrade of the control
 * plane. Measures how much of that the clients notice. day.ts plays a whole day of the scale model.
 */

import { SimulatedProxy } from "../proxy.ts";
import type { SimulatedApiserver } from "./apiserver.ts";
import type { Problem } from "./findings.ts";
import { type ModelNode, Peaks, ScaleModel } from "./scale-model.ts";

export type FleetOptions = {
  readonly nodes: number;
  readonly seed: number;
  readonly isStrict: boolean;
  /** Called every ten virtual seconds, so that the caller can measure the process. */
  readonly tell: (line: string) => void;
};

export type FleetFigures = {
  readonly watches: number;
  readonly virtualMs: number;
  readonly problems: readonly Problem[];
  readonly counts: ReadonlyMap<string, number>;
  /** The most requests that reached the backends within one second, not counting the start of the run. */
  readonly peakAskedPerSecond: number;
  /** The most connections that the proxy opened within one second, not counting the start of the run. */
  readonly peakDialsPerSecond: number;
  readonly eventCount: number;
};

const startMs = 60_000;
/** An apiserver that stops lets its watches run this long: kube-apiserver's default (watch.md §5.5). */
const graceMs = 60_000;
const betweenMs = 30_000;
const awayMs = 5_000;
const tellMs = 10_000;
const writeMs = 50;
/** With 50,000 watches, a check of all of them after each step would take hours. */
const checkMs = 1_000;

export class Fleet {
  readonly #options: FleetOptions;
  readonly #model: ScaleModel<SimulatedProxy>;
  readonly #peaks: Peaks;

  constructor(options: FleetOptions) {
    this.#options = options;
    const { seed, isStrict } = options;
    this.#model = new ScaleModel(
      { seed, isStrict, isProbed: false, checkMs },
      (parts) => new SimulatedProxy(parts),
    );
    this.#peaks = new Peaks(this.#model);
  }

  play(): FleetFigures {
    const { world, problems, counts } = this.#model.findings;
    for (let node = 0; node < this.#options.nodes; node += 1) this.#model.enter(startMs / 2);
    this.#write([...this.#model.nodes]);
    this.#pass(startMs);
    this.#peaks.reset();
    for (const apiserver of this.#model.apiservers) this.#restart(apiserver);
    this.#pass(graceMs);
    return {
      watches: this.#model.openWatches,
      virtualMs: world.now(),
      problems,
      counts,
      peakAskedPerSecond: this.#peaks.asked,
      peakDialsPerSecond: this.#peaks.dialled,
      eventCount: counts.get("events") ?? 0,
    };
  }

  #restart(apiserver: SimulatedApiserver): void {
    this.#options.tell(`${apiserver.name} is shut down`);
    const { world } = this.#model.findings;
    apiserver.shutDown(graceMs, () => world.after(awayMs, () => apiserver.restart(1_000)));
    this.#pass(graceMs + awayMs + betweenMs);
  }

  /** Lets `ms` pass and reports the state of the run every `tellMs`. */
  #pass(ms: number): void {
    const { world } = this.#model.findings;
    for (let left = ms; left > 0; left -= tellMs) {
      world.runUntil(() => false, Math.min(tellMs, left));
      const loads = this.#model.loads.join(" + ");
      this.#options.tell(
        `${Math.round(world.now() / 1_000)} s: watches ${loads}, ${this.#model.relists} relists`,
      );
    }
  }

  /** Writes one object every 50 ms. One write in fifty concerns all nodes. */
  #write(nodes: readonly ModelNode[]): void {
    const { world, random } = this.#model.findings;
    this.#model.write(random.chance(0.02) ? undefined : random.pick(nodes));
    world.after(writeMs, () => this.#write(nodes));
  }
}
