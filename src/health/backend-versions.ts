import type { Clock } from "../base/clock.ts";
import type { Journal } from "../events/journal.ts";
import { healthLimits } from "./limits.ts";

/** The Kubernetes versions that the backends report at /version, such as "v1.36.1". */
export class BackendVersions {
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly #known = new Map<string, { version: string; askedAt: number }>();

  constructor(clock: Clock, journal: Journal) {
    this.#clock = clock;
    this.#journal = journal;
  }

  of(backend: string): string {
    return this.#known.get(backend)?.version ?? "";
  }

  /** Requests the backend's version at its next probe, because its process may have been replaced. */
  expire(backend: string): void {
    const known = this.#known.get(backend);
    if (known !== undefined) known.askedAt = Number.NEGATIVE_INFINITY;
  }

  /** Takes over a version that the parent of this worker has requested. */
  told(backend: string, version: string): void {
    this.#known.set(backend, { version, askedAt: 0 });
  }

  /** True if the proxy must request the backend's version now. Further calls return false for `versionLookMs`. */
  takeDue(backend: string): boolean {
    const askedAt = this.#clock.now();
    const known = this.#known.get(backend);
    if (known !== undefined && askedAt - known.askedAt < healthLimits.versionLookMs) return false;
    this.#known.set(backend, { version: known?.version ?? "", askedAt });
    return true;
  }

  /**
   * Records a response to a request for the version. `version`: "" if the response contained none; in
   * that case, the known version stays.
   */
  reported(backend: string, version: string): void {
    const known = this.#known.get(backend);
    // Ignores the result if the backend was removed while the request was running (`known` is undefined).
    if (known === undefined || version === "" || version === known.version) return;
    const from = known.version;
    known.version = version;
    this.#journal.write({ kind: "backend.version_changed", backend, from, to: version });
  }

  reconcile(backends: readonly string[]): void {
    for (const name of this.#known.keys()) if (!backends.includes(name)) this.#known.delete(name);
  }
}
