import type { Clock } from "../base/clock.ts";
import type { Journal } from "../events/journal.ts";
import { healthLimits } from "./limits.ts";

/** The versions that the backends report at /version, such as "v1.36.1". */
export class BackendVersions {
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly #versions = new Map<string, string>();
  readonly #askedAt = new Map<string, number>();

  constructor(clock: Clock, journal: Journal) {
    this.#clock = clock;
    this.#journal = journal;
  }

  /** Returns "" until the backend has reported a version. */
  of(backend: string): string {
    return this.#versions.get(backend) ?? "";
  }

  /** True if the backend is to be asked now; then it is not due again for `versionLookMs`. */
  takeDue(backend: string): boolean {
    const now = this.#clock.now();
    if (now - (this.#askedAt.get(backend) ?? Number.NEGATIVE_INFINITY) < healthLimits.versionLookMs)
      return false;
    this.#askedAt.set(backend, now);
    return true;
  }

  /** `version` "": the response had none, so the last one stays. */
  reported(backend: string, version: string): void {
    const from = this.of(backend);
    // The backend may have been removed while it was asked.
    if (version === "" || version === from || !this.#askedAt.has(backend)) return;
    this.#versions.set(backend, version);
    this.#journal.write({ kind: "backend.version_changed", backend, from, to: version });
  }

  reconcile(backends: readonly string[]): void {
    for (const name of this.#askedAt.keys()) {
      if (backends.includes(name)) continue;
      this.#askedAt.delete(name);
      this.#versions.delete(name);
    }
  }
}
