/**
 * A value that is loaded from certificate files, and reloaded when the files change. The last good value stays until a
 * new one has passed every test (D10, incident 000).
 */
import { type Clock, timestampOf } from "../../base/clock.ts";
import { Failure, wordsOf } from "../../base/failure.ts";
import { watchFiles } from "../../base/file-watcher.ts";
import type { Journal } from "../../events/journal.ts";

/**
 * Milliseconds until a rejected certificate file is checked again, because a certificate that is not valid yet may
 * become valid.
 */
export const certificateRetryMs = 60_000;

export type Reloading = {
  /** The value's name in journal and metrics. */
  readonly name: string;
  readonly reloadIntervalMs: number;
  readonly clock: Clock;
  readonly journal: Journal;
};

export type ReloadingFileParts<T> = Reloading & {
  readonly files: readonly string[];
  /** Reads the files and checks the value. `was`: the value to replace; undefined: none. */
  readonly load: (was: T | undefined) => Promise<T | Failure>;
  readonly isSame: (one: T, other: T) => boolean;
  /** True if this change should be journaled; default: every change is. */
  readonly isNews?: (now: T, was: T) => boolean;
  /** When the value expires, in ms since 1970. */
  readonly notAfterMs: (value: T) => number;
  readonly onSwap: (now: T, was: T) => void;
};

export class ReloadingFile<T> {
  readonly #parts: ReloadingFileParts<T>;
  #current: T | undefined;
  /** The problem that was journaled last, so that it is not journaled again every minute; "": none. */
  #problem = "";
  /**
   * The latest reload. The next reload starts only after this one has ended, and reads the files as they are at that
   * time.
   */
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

  /** Reads the files now. Returns a Failure if the previous value stays in use. */
  reload(): Promise<Failure | undefined> {
    this.#last = this.#last.then(() => this.#reload()).catch(unforeseen);
    return this.#last;
  }

  journalLoaded(value: T): void {
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
    const wasRefused = this.#problem !== "";
    this.#problem = "";
    const isOther = was === undefined || !isSame(loaded, was);
    // The first good value after a bad file is journaled as well.
    if (wasRefused || was === undefined || (isNews?.(loaded, was) ?? isOther)) this.journalLoaded(loaded);
    if (isOther) this.#current = loaded;
    if (isOther && was !== undefined) onSwap(loaded, was);
  }

  #refuse(failure: Failure): Failure {
    const { name, clock, journal } = this.#parts;
    // While there is no good value, every failure is journaled.
    if (failure.message !== this.#problem || this.#current === undefined)
      journal.write({ kind: "certificate.refused", name, problem: failure.message });
    this.#problem = failure.message;
    // Tries again later. A problem may end although the files do not change: a certificate becomes valid, or a disk
    // answers again.
    this.#cancelRetry = clock.after(certificateRetryMs, () => void this.reload());
    return failure;
  }
}

/** Turns an unexpected exception into a Failure, so that the last good value stays (incident 000). */
function unforeseen(reason: unknown): Failure {
  return new Failure("bad-file", "proxy", wordsOf(reason), reason);
}
