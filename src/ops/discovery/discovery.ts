/**
 * Looks up the backends repeatedly, and keeps the result of the last successful lookup. A lookup that fails, hangs or
 * finds no backend changes nothing (F21). A Source (discover.ts) does one lookup.
 */
import type { Clock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";
import { checkFound, type Discovered } from "./discovered.ts";
import { discoveryLimits } from "./limits.ts";

export type Source = {
  /** The configured type: "DNS", "File", "EndpointSlice" or "Lease". */
  readonly from: string;
  /**
   * True if entries of the source expire, so that an outage of etcd removes backends from the source although they
   * still work; default: false.
   */
  readonly expires?: boolean;
  ask(): Promise<readonly Discovered[] | Failure>;
  /** Calls `run` whenever the source has changed. Returns a function that stops these calls. */
  watch?(run: () => void): () => void;
  /** Ends a lookup that has timed out. */
  giveUp(): void;
  stop(): void;
};

export type DiscoveryParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Prefix of backends' names in the journal; default: "". */
  readonly prefix?: string;
  readonly source: Source;
  readonly intervalMs: number;
  /**
   * The backends to use until the first lookup succeeds. An earlier source or the configuration may have named them.
   */
  readonly found: readonly Discovered[];
  /** True if the backend of this name is neither dead nor draining; default: false. */
  readonly answers?: (name: string) => boolean;
  readonly onChange: (found: readonly Discovered[]) => void;
};

export class Discovery {
  readonly #parts: DiscoveryParts;
  #found: readonly Discovered[];
  #retryMs: number = discoveryLimits.discoveryRetryMs;
  #lastFailure = "";
  /**
   * The backends that are kept although the source no longer lists them. For each, by its name: the clock reading (ms)
   * at which the source stopped listing it.
   */
  #unlisted: ReadonlyMap<string, number> = new Map();
  #hasListed = false;
  #lastSuccessAtMs = 0;
  #failures = 0;
  #isAsking = false;
  #hasChangedDuringLookup = false;
  #isStopped = false;
  #cancelNext: () => void = () => {};
  #stopWatching: () => void = () => {};

  constructor(parts: DiscoveryParts) {
    this.#parts = parts;
    this.#found = parts.found;
  }

  get found(): readonly Discovered[] {
    return this.#found;
  }

  /**
   * The state of discovery. `lastSuccessAtMs`: when the last lookup succeeded, in milliseconds since 1970; 0: never.
   */
  get record(): { readonly lastSuccessAtMs: number; readonly failures: number; readonly found: number } {
    return {
      lastSuccessAtMs: this.#lastSuccessAtMs,
      failures: this.#failures,
      found: this.#found.length,
    };
  }

  start(): void {
    this.#stopWatching = this.#parts.source.watch?.(() => this.#look()) ?? (() => {});
    this.#look();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelNext();
    this.#stopWatching();
    this.#parts.source.stop();
    // A reported failure would stay active for ever once its source is no longer used, so it is reported as recovered.
    this.#recovered();
  }

  #recovered(): void {
    const { journal, source } = this.#parts;
    if (this.#lastFailure !== "") journal.write({ kind: "discovery.recovered", from: source.from });
    this.#lastFailure = "";
  }

  #look(): void {
    // Lookups never overlap, so that a hanging resolver does not occupy more and more threads.
    this.#hasChangedDuringLookup = this.#isAsking;
    if (this.#isAsking || this.#isStopped) return;
    this.#isAsking = true;
    this.#cancelNext();
    const { clock, source } = this.#parts;
    let isLate = false;
    const stopTimer = clock.after(discoveryLimits.discoveryMs, () => {
      isLate = true;
      this.#failed(new Failure("bad-file", "proxy", `No answer in ${discoveryLimits.discoveryMs} ms`));
      source.giveUp();
    });
    const settled = (outcome: readonly Discovered[] | Failure): void => {
      stopTimer();
      this.#isAsking = false;
      if (this.#isStopped) return;
      // A success after the timeout is still used. A failure is dropped, because the timeout was already reported.
      if (!(isLate && outcome instanceof Failure)) this.#take(outcome);
      if (this.#hasChangedDuringLookup) this.#look();
      else this.#schedule();
    };
    source.ask().then(settled, (reason: unknown) => settled(failureFrom(reason, "proxy")));
  }

  #schedule(): void {
    const { clock, intervalMs } = this.#parts;
    const waitMs = this.#lastFailure === "" ? intervalMs : Math.min(this.#retryMs, intervalMs);
    if (this.#lastFailure !== "") this.#retryMs *= 2;
    this.#cancelNext = clock.after(waitMs, () => this.#look());
  }

  #take(outcome: readonly Discovered[] | Failure): void {
    const { clock, journal, source, onChange } = this.#parts;
    const listed = outcome instanceof Failure ? outcome : checkFound(outcome);
    if (listed instanceof Failure) return this.#failed(listed);
    const found = this.#withUnlisted(listed);
    this.#recovered();
    this.#retryMs = discoveryLimits.discoveryRetryMs;
    this.#lastSuccessAtMs = clock.wall();
    if (JSON.stringify(found) === JSON.stringify(this.#found)) return;
    const [was, is] = [namesOf(this.#found), namesOf(found)];
    const { prefix = "" } = this.#parts;
    const added = is.filter((name) => !was.includes(name)).map((name) => prefix + name);
    const removed = was.filter((name) => !is.includes(name)).map((name) => prefix + name);
    this.#found = found;
    journal.write({ kind: "discovery.changed", from: source.from, added, removed });
    onChange(found);
  }

  /**
   * Returns `listed` and the backends that the source no longer lists but that still answer. These are kept for
   * `unlistedKeptMs`, and for as long as none of `listed` answers. After an outage of etcd, the first apiserver that checks the list removes all other apiservers
   * from it. They return only when they renew their entries (k8s.io/kubernetes, pkg/controlplane/reconcilers/lease.go).
   */
  #withUnlisted(listed: readonly Discovered[]): readonly Discovered[] {
    const { clock, journal, source, answers } = this.#parts;
    const last = this.#unlisted;
    this.#unlisted = new Map();
    // Backends from before the first lookup are not kept, because they come from another source or from the config.
    const isFirst = !this.#hasListed;
    this.#hasListed = true;
    if (source.expires !== true || isFirst) return listed;
    const names = namesOf(listed);
    const now = clock.now();
    // A list of which nothing answers may come from a client that may write it, so it replaces nothing that does.
    const isAnswering = names.some((name) => answers?.(name) === true);
    const kept = this.#found
      .filter(({ name }) => {
        const isInTime = now - (last.get(name) ?? now) < discoveryLimits.unlistedKeptMs;
        return !names.includes(name) && (isInTime || !isAnswering) && answers?.(name) === true;
      })
      .slice(0, limits.discoveredBackends - (isAnswering ? listed.length : 0));
    if (kept.length === 0) return listed;
    this.#unlisted = new Map(kept.map(({ name }) => [name, last.get(name) ?? now]));
    const { prefix = "" } = this.#parts;
    if (kept.some(({ name }) => !last.has(name)))
      journal.write({
        kind: "discovery.backends_retained",
        from: source.from,
        names: namesOf(kept).map((name) => prefix + name),
      });
    const all = [...kept, ...listed].slice(0, limits.discoveredBackends);
    return all.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  #failed({ message }: Failure): void {
    if (this.#isStopped) return;
    const { journal, source } = this.#parts;
    this.#failures += 1;
    if (message !== this.#lastFailure)
      journal.write({ kind: "discovery.failed", from: source.from, reason: message });
    this.#lastFailure = message;
  }
}

function namesOf(found: readonly Discovered[]): readonly string[] {
  return found.map(({ name }) => name);
}
