/**
 * What was read from certificate files, read again when they change. Whatever the files hold later, the last good value
 * stays until a better one has passed every test (D10, seed 000).
 */
import { type Clock, timestampOf } from "../../base/clock.ts";
import { Failure, wordsOf } from "../../base/failure.ts";
import { watchFiles } from "../../base/file-watcher.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";

export type Reloading = {
  /** As the journal and the metrics name it. */
  readonly name: string;
  readonly reloadIntervalMs: number;
  readonly clock: Clock;
  readonly journal: Journal;
};

export type ReloadingFileParts<T> = Reloading & {
  readonly files: readonly string[];
  /** Reads and proves; `was` is what it would replace. */
  readonly load: (was: T | undefined) => Promise<T | Failure>;
  readonly isSame: (one: T, other: T) => boolean;
  /** True if the journal is to have this change; every one unless said otherwise. */
  readonly isNews?: (now: T, was: T) => boolean;
  /** Milliseconds since 1970. */
  readonly notAfterMs: (value: T) => number;
  readonly onSwap: (now: T, was: T) => void;
};

export class ReloadingFile<T> {
  readonly #parts: ReloadingFileParts<T>;
  #current: T | undefined;
  /** The problem that the journal knows of, so that it is written once and not every minute. */
  #refused = "";
  /** One load at a time, each reading the files as they are when its turn comes. */
  #last: Promise<Failure | undefined> = Promise.resolve(undefined);
  #cancelRetry: () => void = () => {};
  #stopWatching: () => void = () => {};
  #isStopped = false;

  constructor(parts: ReloadingFileParts<T>, first?: T) {
    this.#parts = parts;
    this.#current = first;
  }

  get current(): T | undefined {
    return this.#current;
  }

  watch(): void {
    const { files, clock, reloadIntervalMs: intervalMs } = this.#parts;
    this.#stopWatching = watchFiles(files, { clock, intervalMs, onChange: () => void this.reload() });
  }

  stop(): void {
    this.#isStopped = true;
    this.#stopWatching();
    this.#cancelRetry();
  }

  /** Reads the files now; the Failure says why the last good value stayed. */
  reload(): Promise<Failure | undefined> {
    this.#last = this.#last.then(() => this.#reload());
    return this.#last;
  }

  tellLoaded(value: T): void {
    const { name, journal, notAfterMs } = this.#parts;
    journal.write({ kind: "certificate.loaded", name, notAfter: timestampOf(notAfterMs(value)) });
  }

  async #reload(): Promise<Failure | undefined> {
    this.#cancelRetry();
    const was = this.#current;
    const loaded = await this.#parts.load(was).catch(unforeseen);
    if (this.#isStopped) return undefined;
    if (loaded instanceof Failure) return this.#refuse(loaded);
    this.#take(loaded, was);
    return undefined;
  }

  #take(loaded: T, was: T | undefined): void {
    const { isSame, isNews, onSwap } = this.#parts;
    const wasRefused = this.#refused !== "";
    this.#refused = "";
    const isOther = was === undefined || !isSame(loaded, was);
    // The good one that is used all the time is told once more when it is back in place of the bad one.
    if (wasRefused || was === undefined || (isNews?.(loaded, was) ?? isOther)) this.tellLoaded(loaded);
    if (isOther) this.#current = loaded;
    if (isOther && was !== undefined) onSwap(loaded, was);
  }

  #refuse(failure: Failure): Failure {
    const { name, clock, journal } = this.#parts;
    // Without any good value it is told each time.
    if (failure.message !== this.#refused || this.#current === undefined)
      journal.write({ kind: "certificate.refused", name, problem: failure.message });
    this.#refused = failure.message;
    // Some problems pass without a change of the files: a date that is reached, a disk that answers again, a certificate
    // that a new CA has signed.
    this.#cancelRetry = clock.after(limits.certificateRetryMs, () => void this.reload());
    return failure;
  }
}

/** Whatever a file has made Node throw: the last good value stays (seed 000). */
function unforeseen(reason: unknown): Failure {
  return new Failure("bad-file", "proxy", wordsOf(reason), reason);
}
