/**
 * Who vouches for backends, or for clients: one file of authorities, looked at by itself. Whatever stands there later, the
 * last good ones go on counting until better ones have passed every test: a wrong CA would cost all at once (D10).
 */
import { type Clock, timestampOf, wallOf } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { readText } from "../../base/read-text.ts";
import { watchFiles } from "../../base/watch-files.ts";
import type { Journal } from "../../events/journal.ts";
import { certificatesIn, outOfDate } from "./serving-pair.ts";

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
    return failure === undefined ? ca : unusable(`"${file}"`, failure);
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

/** The PEM certificates of a file of authorities, and nothing else that may stand in it. EC and RSA alike. */
export function loadCa(file: string): string | Failure {
  const text = readPem(file);
  if (text instanceof Failure) return text;
  const certificates = certificatesIn(text);
  if (!(certificates instanceof Failure)) return certificates.map(String).join("");
  return unusable(`"${file}"`, certificates);
}

/** A file of certificates or keys; larger ones are none. */
export function readPem(file: string): string | Failure {
  const text = readText(file, limits.certificateBytes);
  return text instanceof Failure ? unusable(`"${file}"`, text) : text;
}

/** In the words of every refusal: which files, and why. */
export function unusable(files: string, { message, cause }: Failure): Failure {
  return new Failure("bad-file", "proxy", `Cannot use ${files}: ${message}`, cause);
}

/**
 * Of authorities that `loadCa` has read, in milliseconds since 1970. While they change, the old one may end: there are
 * certificates of the new one by then.
 */
export function lastEndOf(ca: string): number {
  const certificates = certificatesIn(ca);
  if (certificates instanceof Failure) return 0;
  return Math.max(...certificates.map(({ validTo }) => wallOf(validTo)));
}

/** None of these authorities holds at this time: whatever they have signed would be refused. */
function outlived(ca: string, wallMs: number): Failure | undefined {
  const certificates = certificatesIn(ca);
  if (certificates instanceof Failure) return certificates;
  const problems = certificates.map((certificate) => outOfDate([certificate], wallMs));
  return problems.every((problem) => problem !== undefined) ? problems[0] : undefined;
}
