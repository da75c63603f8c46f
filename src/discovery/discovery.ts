/**
 * Looks for backends again and again, and keeps what it found last: a source that fails, hangs or answers with
 * nothing changes nothing (F21). Who is asked is a Source (discover.ts); this is when, and what follows.
 */
import type { Clock } from "../base/clock.ts";
import { Failure, failureFrom } from "../base/failure.ts";
import { limits } from "../base/limits.ts";
import type { Journal } from "../events/journal.ts";
import { checkFound, type Found } from "./discovered.ts";
import { discoveryLimits } from "./limits.ts";

export type Source = {
  /** The configured type: "DNS", "File", "EndpointSlice" or "Lease". */
  readonly from: string;
  /** True where what is listed has to be renewed in etcd, and so goes by itself while etcd is away. Left out: false. */
  readonly expires?: boolean;
  ask(): Promise<readonly Found[] | Failure>;
  /** Calls `run` when another look would bring something new; returns its stop function. */
  watch?(run: () => void): () => void;
  /** The answer was waited for in vain. */
  giveUp(): void;
  stop(): void;
};

export type DiscoveryParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Told before the names of what was found; left out: "". */
  readonly prefix?: string;
  readonly source: Source;
  readonly intervalMs: number;
  /** What was found before, by another source perhaps: it stays until the first answer. */
  readonly found: readonly Found[];
  /** Does this backend, by its name, answer: is it neither dead nor about to go? Left out: none does. */
  readonly answers?: (name: string) => boolean;
  readonly onChange: (found: readonly Found[]) => void;
};

export class Discovery {
  readonly #parts: DiscoveryParts;
  #found: readonly Found[];
  #retryMs: number = discoveryLimits.discoveryRetryMs;
  /** Why the last look failed; "" after one that did not. */
  #complaint = "";
  /** Those that are kept although they are listed no more, by name: since when, a clock reading. */
  #unlisted: ReadonlyMap<string, number> = new Map();
  #hasListed = false;
  #lastSuccessAtMs = 0;
  #failures = 0;
  #isAsking = false;
  /** Something changed while a look was under way. */
  #isStale = false;
  #isStopped = false;
  #cancelNext: () => void = () => {};
  #stopWatching: () => void = () => {};

  constructor(parts: DiscoveryParts) {
    this.#parts = parts;
    this.#found = parts.found;
  }

  get found(): readonly Found[] {
    return this.#found;
  }

  /** For metrics: wall time of the last look that brought backends (0: none yet), and looks that did not. */
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
  }

  #look(): void {
    // One at a time: a resolver that hangs is not asked by ever more threads.
    this.#isStale = this.#isAsking;
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
    const settled = (outcome: readonly Found[] | Failure): void => {
      stopTimer();
      this.#isAsking = false;
      if (this.#isStopped) return;
      // Better late than never: an answer is an answer. A late failure has been told.
      if (!(isLate && outcome instanceof Failure)) this.#take(outcome);
      if (this.#isStale) this.#look();
      else this.#schedule();
    };
    source.ask().then(settled, (reason: unknown) => settled(failureFrom(reason, "proxy")));
  }

  #schedule(): void {
    const { clock, intervalMs } = this.#parts;
    const waitMs = this.#complaint === "" ? intervalMs : Math.min(this.#retryMs, intervalMs);
    if (this.#complaint !== "") this.#retryMs *= 2;
    this.#cancelNext = clock.after(waitMs, () => this.#look());
  }

  #take(outcome: readonly Found[] | Failure): void {
    const { clock, journal, source, onChange } = this.#parts;
    const listed = outcome instanceof Failure ? outcome : checkFound(outcome);
    if (listed instanceof Failure) return this.#failed(listed);
    const found = this.#withUnlisted(listed);
    if (this.#complaint !== "") journal.write({ kind: "discovery.recovered", from: source.from });
    this.#complaint = "";
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
   * While etcd is away apiservers cannot renew what they are listed by. When it is back the first one that looks takes all
   * others out (k8s.io/kubernetes, pkg/controlplane/reconcilers/lease.go), until they renew. Those that answer are kept for
   * a while: moving their watches twice would be for nothing.
   */
  #withUnlisted(listed: readonly Found[]): readonly Found[] {
    const { clock, journal, source, answers } = this.#parts;
    const last = this.#unlisted;
    this.#unlisted = new Map();
    // What another source found, or the configuration, is not this one's to keep.
    const isFirst = !this.#hasListed;
    this.#hasListed = true;
    if (source.expires !== true || isFirst) return listed;
    const names = namesOf(listed);
    const now = clock.now();
    const kept = this.#found
      .filter(({ name }) => {
        const isInTime = now - (last.get(name) ?? now) < discoveryLimits.unlistedKeptMs;
        return !names.includes(name) && isInTime && answers?.(name) === true;
      })
      .slice(0, limits.discoveredBackends - listed.length);
    if (kept.length === 0) return listed;
    this.#unlisted = new Map(kept.map(({ name }) => [name, last.get(name) ?? now]));
    const { prefix = "" } = this.#parts;
    if (kept.some(({ name }) => !last.has(name)))
      journal.write({
        kind: "discovery.backends_retained",
        from: source.from,
        names: namesOf(kept).map((name) => prefix + name),
      });
    return [...listed, ...kept].toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  #failed({ message }: Failure): void {
    const { journal, source } = this.#parts;
    this.#failures += 1;
    if (message !== this.#complaint)
      journal.write({ kind: "discovery.failed", from: source.from, reason: message });
    this.#complaint = message;
  }
}

function namesOf(found: readonly Found[]): readonly string[] {
  return found.map(({ name }) => name);
}
