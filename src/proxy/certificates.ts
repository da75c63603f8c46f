/**
 * A listener's serving certificate: loaded, proven, swapped in; and loaded again when its files change. Whatever the
 * new files hold, the last good certificate goes on serving until a better one has passed every test (D10, seed 000).
 */
import assert from "node:assert/strict";
import type tls from "node:tls";
import { type Clock, timestampOf, wallOf } from "../clock.ts";
import { Failure } from "../failure.ts";
import type { Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import { readText } from "../read-text.ts";
import { watchFiles } from "../watch-files.ts";
import { tryHandshake } from "./self-handshake.ts";
import { serverContext } from "./server-context.ts";
import { certificatesIn, checkPair, outOfDate, type ServingPair } from "./serving-pair.ts";

export type ServingCertificate = {
  /** The context for the next handshake. Only while `isGood`, as the others. */
  readonly context: () => tls.SecureContext;
  /** Has there ever been a good one? Then there is one now. */
  readonly isGood: () => boolean;
  /** The pair itself, where it is shown to backends. */
  readonly pair: () => ServingPair;
  /** Milliseconds since 1970. */
  readonly notAfter: () => number;
  /** Of the last of the client CA's certificates, in milliseconds since 1970; undefined without a client CA. */
  readonly clientCaNotAfter: () => number | undefined;
  /** Looks at the files now; the Failure says why the last good certificate stayed. */
  reload(): Promise<Failure | undefined>;
  stop(): void;
};

export type CertificateOptions = {
  /** As the journal names it. */
  readonly name: string;
  readonly certFile: string;
  readonly keyFile: string;
  /** Whose word counts on clients; undefined: certificates of clients mean nobody. */
  readonly clientCaFile?: string | undefined;
  /** Do client certificates mean somebody at its address, be it at another host? */
  readonly asksWho?: boolean;
  /** Another pair, or another client CA, has taken the place of the last one. */
  readonly onSwap?: (isOtherCa: boolean) => void;
  /** Why another pair would not do in the place of one that does; undefined: nothing speaks against it. */
  readonly prove?: (pair: ServingPair) => Promise<Failure | undefined>;
  readonly reloadIntervalMs: number;
  readonly clock: Clock;
  readonly journal: Journal;
};

/** The first load: without a good certificate there is nothing to serve with, and the Failure says why. */
export async function loadCertificate(options: CertificateOptions): Promise<ServingCertificate | Failure> {
  const serving = new ReloadingCertificate(options);
  const failure = await serving.reload();
  if (failure !== undefined) serving.stop();
  return failure ?? serving;
}

/** The same where others can be served without it: it is looked for until there is a good one. */
export async function keepCertificate(
  options: CertificateOptions,
): Promise<{ readonly certificate: ServingCertificate; readonly failure: Failure | undefined }> {
  const certificate = new ReloadingCertificate(options);
  return { certificate, failure: await certificate.reload() };
}

/** The PEM certificates of a file of authorities, and nothing else that may stand in it. EC and RSA alike. */
export function loadCa(file: string): string | Failure {
  const text = read(file);
  if (text instanceof Failure) return text;
  const certificates = certificatesIn(text);
  if (!(certificates instanceof Failure)) return certificates.map(String).join("");
  return refused(`"${file}"`, certificates);
}

type Loaded = {
  readonly pair: ServingPair;
  readonly clientCa: string | undefined;
  readonly clientCaNotAfter: number | undefined;
  readonly context: tls.SecureContext;
};

class ReloadingCertificate implements ServingCertificate {
  readonly #options: CertificateOptions;
  readonly #stopWatching: () => void;
  #current: Loaded | undefined;
  /** One load at a time, each reading the files as they are when its turn comes. */
  #last: Promise<Failure | undefined> = Promise.resolve(undefined);
  /** The problem that the journal knows of, so that it is written once and not every minute. */
  #refused = "";
  #cancelRetry: (() => void) | undefined;
  #isStopped = false;

  constructor(options: CertificateOptions) {
    this.#options = options;
    const { certFile, keyFile, clientCaFile, clock, reloadIntervalMs } = options;
    const files = [certFile, keyFile, ...(clientCaFile === undefined ? [] : [clientCaFile])];
    this.#stopWatching = watchFiles(files, {
      clock,
      intervalMs: reloadIntervalMs,
      onChange: () => void this.reload(),
    });
  }

  readonly context = (): tls.SecureContext => this.#loaded().context;
  readonly isGood = (): boolean => this.#current !== undefined;
  readonly pair = (): ServingPair => this.#loaded().pair;
  readonly notAfter = (): number => this.#loaded().pair.notAfter;
  readonly clientCaNotAfter = (): number | undefined => this.#loaded().clientCaNotAfter;

  reload(): Promise<Failure | undefined> {
    this.#last = this.#last.then(() => this.#reload());
    return this.#last;
  }

  stop(): void {
    this.#isStopped = true;
    this.#stopWatching();
    this.#cancelRetry?.();
  }

  #loaded(): Loaded {
    assert(this.#current !== undefined, "A certificate is handed out only after its first load");
    return this.#current;
  }

  async #reload(): Promise<Failure | undefined> {
    const { name, journal } = this.#options;
    this.#cancelRetry?.();
    const loaded = await this.#load().catch(unforeseen);
    if (this.#isStopped) return undefined;
    if (loaded instanceof Failure) return this.#refuse(loaded);
    const wasRefused = this.#refused !== "";
    this.#refused = "";
    const was = this.#current;
    const isKnown = isSame(loaded, was);
    // The good one that serves all the time is told once more when it is back in place of the bad one.
    if (!isKnown || wasRefused)
      journal.write({ kind: "certificate.loaded", name, notAfter: timestampOf(loaded.pair.notAfter) });
    if (isKnown) return undefined;
    this.#current = loaded;
    if (was !== undefined) this.#options.onSwap?.(was.clientCa !== loaded.clientCa);
    return undefined;
  }

  /** What is to take the place of something good has to be good for something. */
  async #load(): Promise<Loaded | Failure> {
    const loaded = await load(this.#options);
    const was = this.#current;
    if (loaded instanceof Failure || was === undefined || isSame(loaded, was)) return loaded;
    const { pair, clientCa } = loaded;
    const { clientCaFile, certFile, keyFile, clock, prove } = this.#options;
    const isOtherCa = clientCa !== undefined && clientCa !== was.clientCa;
    const outdated = isOtherCa ? outlived(clientCa, clock.wall()) : undefined;
    if (outdated !== undefined) return refused(`"${clientCaFile}"`, outdated);
    const objection = isSamePair(pair, was.pair) ? undefined : await prove?.(pair);
    return objection === undefined ? loaded : refused(`"${certFile}" with "${keyFile}"`, objection);
  }

  #refuse(failure: Failure): Failure {
    const { name, clock, journal } = this.#options;
    // A host that is not served is told of each time.
    if (failure.message !== this.#refused || this.#current === undefined)
      journal.write({ kind: "certificate.refused", name, problem: failure.message });
    this.#refused = failure.message;
    // Some problems pass without a change of the files: a date that is reached, a disk that answers again.
    this.#cancelRetry = clock.after(limits.certificateRetryMs, () => void this.reload());
    return failure;
  }
}

function isSame({ pair, clientCa }: Loaded, other: Loaded | undefined): boolean {
  return other !== undefined && isSamePair(pair, other.pair) && clientCa === other.clientCa;
}

function isSamePair(one: ServingPair, other: ServingPair): boolean {
  return one.chain === other.chain && one.key === other.key;
}

/** Whatever a file has made Node throw: the last good certificate stays (seed 000). */
function unforeseen(reason: unknown): Failure {
  return new Failure("bad-file", "proxy", reason instanceof Error ? reason.message : String(reason), reason);
}

/** Everything up to the swap. */
async function load(options: CertificateOptions): Promise<Loaded | Failure> {
  const { certFile, keyFile, clientCaFile, asksWho, clock } = options;
  const refuse = (failure: Failure): Failure => refused(`"${certFile}" with "${keyFile}"`, failure);
  const certText = read(certFile);
  if (certText instanceof Failure) return certText;
  const keyText = read(keyFile);
  if (keyText instanceof Failure) return keyText;
  const pair = checkPair(certText, keyText, clock.wall());
  if (pair instanceof Failure) return refuse(pair);
  const clientCa = clientCaFile === undefined ? undefined : loadCa(clientCaFile);
  if (clientCa instanceof Failure) return clientCa;
  const context = serverContext(pair, { clientCa, asksWho: asksWho === true });
  if (context instanceof Failure) return refuse(context);
  const failure = await tryHandshake(context, pair.fingerprint, clock);
  return failure === undefined
    ? { pair, clientCa, clientCaNotAfter: clientCa === undefined ? undefined : lastEndOf(clientCa), context }
    : refuse(failure);
}

function read(file: string): string | Failure {
  const text = readText(file, limits.certificateBytes);
  return text instanceof Failure ? refused(`"${file}"`, text) : text;
}

function refused(files: string, { message, cause }: Failure): Failure {
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
export function outlived(ca: string, wallMs: number): Failure | undefined {
  const certificates = certificatesIn(ca);
  if (certificates instanceof Failure) return certificates;
  const problems = certificates.map((certificate) => outOfDate([certificate], wallMs));
  return problems.every((problem) => problem !== undefined) ? problems[0] : undefined;
}
