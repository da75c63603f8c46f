/**
 * Who vouches for the backends: one file of authorities, looked at by itself. Whatever stands there later, the last good
 * ones go on counting until better ones have passed every test: a wrong CA would cost all backends at once (D10).
 */
import { type Clock, timestampOf } from "../clock.ts";
import { Failure } from "../failure.ts";
import type { Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import { watchFiles } from "../watch-files.ts";
import { lastEndOf, loadCa, outlived } from "./certificates.ts";

export type AuthorityOptions = {
  /** As the journal and the metrics name it. */
  readonly name: string;
  readonly file: string;
  readonly reloadIntervalMs: number;
  readonly clock: Clock;
  readonly journal: Journal;
  /** Why these, PEM, would not do; undefined: nothing speaks against them. */
  readonly prove: (ca: string) => Promise<Failure | undefined>;
  /** Others have taken the place of the last ones. */
  readonly onSwap: () => void;
};

export class Authority {
  readonly #options: AuthorityOptions;
  #ca: string;
  /** The problem that the journal knows of, so that it is written once and not every minute. */
  #refused = "";
  /** One load at a time, each reading the file as it is when its turn comes. */
  #last: Promise<Failure | undefined> = Promise.resolve(undefined);
  #cancelRetry: () => void = () => {};
  #stopWatching: () => void = () => {};
  #isStopped = false;

  private constructor(options: AuthorityOptions, ca: string) {
    this.#options = options;
    this.#ca = ca;
  }

  /** The first load: there is nothing else to go by, so whatever can be read counts. Watched once it is started. */
  static load(options: AuthorityOptions): Authority | Failure {
    const ca = loadCa(options.file);
    return ca instanceof Failure ? ca : new Authority(options, ca);
  }

  get name(): string {
    return this.#options.name;
  }

  /** PEM. */
  get ca(): string {
    return this.#ca;
  }

  /** Of the last of them, in milliseconds since 1970. */
  get notAfterMs(): number {
    return lastEndOf(this.#ca);
  }

  start(): void {
    const { file, clock, reloadIntervalMs: intervalMs, name, journal } = this.#options;
    journal.write({ kind: "certificate.loaded", name, notAfter: timestampOf(this.notAfterMs) });
    this.#stopWatching = watchFiles([file], { clock, intervalMs, onChange: () => void this.reload() });
  }

  stop(): void {
    this.#isStopped = true;
    this.#stopWatching();
    this.#cancelRetry();
  }

  /** Looks at the file now; the Failure says why the last good ones stayed. */
  reload(): Promise<Failure | undefined> {
    this.#last = this.#last.then(() => this.#reload());
    return this.#last;
  }

  async #reload(): Promise<Failure | undefined> {
    this.#cancelRetry();
    const loaded = await this.#load();
    if (this.#isStopped) return undefined;
    if (loaded instanceof Failure) return this.#refuse(loaded);
    const { name, journal, onSwap } = this.#options;
    const isOther = loaded !== this.#ca;
    const wasRefused = this.#refused !== "";
    this.#refused = "";
    this.#ca = loaded;
    // The good ones that count all the time are told once more when they are back in place of the bad ones.
    if (isOther || wasRefused)
      journal.write({ kind: "certificate.loaded", name, notAfter: timestampOf(this.notAfterMs) });
    if (isOther) onSwap();
    return undefined;
  }

  async #load(): Promise<string | Failure> {
    const { file, clock, prove } = this.#options;
    const ca = loadCa(file);
    if (ca instanceof Failure || ca === this.#ca) return ca;
    const failure = outlived(ca, clock.wall()) ?? (await prove(ca));
    if (failure === undefined) return ca;
    return new Failure("bad-file", "proxy", `Cannot use "${file}": ${failure.message}`, failure);
  }

  #refuse(failure: Failure): Failure {
    const { name, clock, journal } = this.#options;
    if (failure.message !== this.#refused)
      journal.write({ kind: "certificate.refused", name, problem: failure.message });
    this.#refused = failure.message;
    // A CA may come before the certificates that it has signed: then it will do as soon as a backend shows one.
    this.#cancelRetry = clock.after(limits.certificateRetryMs, () => void this.reload());
    return failure;
  }
}
