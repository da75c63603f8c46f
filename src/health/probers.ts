/** One prober for each configured backend. */
import type { Backends } from "./backends.ts";
import { type Probe, Prober, type ProberParts, type ProbeTimes } from "./prober.ts";

export type ProbersParts = Pick<ProberParts, "clock" | "random"> & {
  readonly times: ProbeTimes;
  readonly probe: Probe;
  readonly backends: Backends;
  readonly dialMs: (backend: string) => number;
  /** True while a session in use is silent and another session's PINGs are answered on time. */
  readonly mayLoseLarge: (backend: string) => boolean;
  /** True if a PING sent after this clock reading was answered, and none was late for a while. */
  readonly passesSmall: (backend: string, since: number) => boolean;
  /** A new socket was answered after `ms`. */
  readonly answered: (backend: string, ms: number) => void;
};

export class Probers {
  readonly #parts: ProbersParts;
  readonly #probers = new Map<string, Prober>();

  constructor(parts: ProbersParts) {
    this.#parts = parts;
  }

  get all(): ReadonlyMap<string, Prober> {
    return this.#probers;
  }

  reconcile(names: readonly string[]): void {
    for (const [name, prober] of this.#probers) {
      if (names.includes(name)) continue;
      prober.stop();
      this.#probers.delete(name);
    }
    for (const name of names) {
      if (this.#probers.has(name)) continue;
      const prober = this.#proberOf(name);
      this.#probers.set(name, prober);
      prober.start();
    }
  }

  probeNow(name: string): void {
    this.#probers.get(name)?.probeNow();
  }

  expediteProbe(name: string): void {
    this.#probers.get(name)?.expediteProbe();
  }

  doubtLarge(name: string): void {
    this.#probers.get(name)?.doubtLarge();
  }

  #proberOf(name: string): Prober {
    const { clock, random, times, probe, backends, dialMs, mayLoseLarge, passesSmall, answered } =
      this.#parts;
    return new Prober({
      clock,
      random,
      times,
      probe: (ear) => probe(name, ear),
      held: () => backends.held(name),
      learn: (evidence) => {
        backends.learn(name, evidence);
        if (evidence.kind === "fresh" && evidence.met === "answer") answered(name, evidence.ms);
      },
      dialMs: () => dialMs(name),
      mayLoseLarge: () => mayLoseLarge(name),
      passesSmall: (since) => passesSmall(name, since),
    });
  }
}
