/**
 * The backoff of client-go's reflector: 0.8 s × (1 + U[0,1)), doubled up to 30 s, and reset after two minutes without a
 * retry.
 */
import type { Findings } from "./findings.ts";

const firstMs = 800;
const mostMs = 30_000;
const resetMs = 120_000;

export class Backoff {
  readonly #findings: Findings;
  #ms = firstMs;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  nextMs(): number {
    const { world, random } = this.#findings;
    if (world.now() - this.#lastAt > resetMs) this.#ms = firstMs;
    this.#lastAt = world.now();
    const waitMs = this.#ms * (1 + random.next());
    this.#ms = Math.min(mostMs, 2 * this.#ms);
    return waitMs;
  }
}
