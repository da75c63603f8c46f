/**
 * When do the tunnels on a dead backend end? A tunnel has no PING of its own, and "dead" is a verdict on lanes: in a
 * graceful stop these are gone and dials are refused while an exec still runs. Whoever refuses has a living kernel,
 * which tells of a dead process by itself. So the proof is a fresh socket, opened since the suspicion, that meets
 * nothing but silence (D6).
 */
import type { Clock } from "../clock.ts";
import type { BackendState } from "../health/backend.ts";
import { type Backends, isDoubted } from "../health/backends.ts";
import { limits } from "../limits.ts";

/** What a fresh socket to a backend met. */
export type Met = "answer" | "refusal" | "silence";

export type FateParts = {
  readonly backends: Backends;
  readonly clock: Clock;
  readonly probe: (backend: string) => Promise<Met>;
};

/** Who is bound to one backend, and how to stop what is under way to tell them. */
type Bound = { readonly runs: Set<() => void>; stop: () => void };

export class Fate {
  readonly #parts: FateParts;
  readonly #bound = new Map<string, Bound>();

  constructor(parts: FateParts) {
    this.#parts = parts;
  }

  /** Calls once when the backend is proven dead; returns its undoing. */
  onDead(backend: string, run: () => void): () => void {
    let bound = this.#bound.get(backend);
    if (bound === undefined) {
      bound = { runs: new Set(), stop: () => {} };
      this.#bound.set(backend, bound);
      this.#watch(backend, bound);
    }
    bound.runs.add(run);
    return () => this.#release(backend, run);
  }

  #watch(backend: string, bound: Bound): void {
    if (isDoubted(this.#stateOf(backend))) this.#confirm(backend, bound);
    else bound.stop = this.#parts.backends.onDoubt(backend, () => this.#confirm(backend, bound));
  }

  #confirm(backend: string, bound: Bound): void {
    this.#parts.probe(backend).then(
      (met) => this.#learn(backend, bound, met),
      () => this.#learn(backend, bound, "answer"),
    );
  }

  /** Probes on until the backend is back, proven dead, or has nobody bound to it. */
  #learn(backend: string, bound: Bound, met: Met): void {
    if (this.#bound.get(backend) !== bound) return;
    const state = this.#stateOf(backend);
    if (!isDoubted(state)) return this.#watch(backend, bound);
    if (met === "silence" && state === "dead") return this.#end(backend, bound);
    bound.stop = this.#parts.clock.after(limits.tunnelProbeMs, () => this.#confirm(backend, bound));
  }

  #end(backend: string, bound: Bound): void {
    this.#bound.delete(backend);
    for (const run of bound.runs) run();
  }

  #release(backend: string, run: () => void): void {
    const bound = this.#bound.get(backend);
    bound?.runs.delete(run);
    if (bound?.runs.size !== 0) return;
    bound.stop();
    this.#bound.delete(backend);
  }

  /** One that the configuration names no more is nobody's to judge: its tunnels end by themselves. */
  #stateOf(backend: string): BackendState {
    return this.#parts.backends.views.find(({ name }) => name === backend)?.state ?? "draining";
  }
}
