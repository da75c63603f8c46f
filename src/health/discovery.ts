/**
 * Looks for backends again and again, and keeps what it found last: a source that fails, hangs or answers with
 * nothing changes nothing (F21). Who is asked is a Source (discover.ts); this is when, and what follows.
 */
import type { Clock } from "../clock.ts";
import { Failure, failureFrom } from "../failure.ts";
import type { Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import { checkFound, type Found } from "./discovered.ts";

export type Source = {
  /** "dns", "file", "endpointslice" or "leases". */
  readonly from: string;
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
  readonly onChange: (found: readonly Found[]) => void;
};

export class Discovery {
  readonly #parts: DiscoveryParts;
  #found: readonly Found[];
  #retryMs: number = limits.discoveryRetryMs;
  /** Why the last look failed; "" after one that did not. */
  #complaint = "";
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
    const stopTimer = clock.after(limits.discoveryMs, () => {
      isLate = true;
      this.#failed(new Failure("bad-file", "proxy", `No answer in ${limits.discoveryMs} ms`));
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
    const found = outcome instanceof Failure ? outcome : checkFound(outcome);
    if (found instanceof Failure) return this.#failed(found);
    if (this.#complaint !== "") journal.write({ kind: "discovery.recovered", from: source.from });
    this.#complaint = "";
    this.#retryMs = limits.discoveryRetryMs;
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
