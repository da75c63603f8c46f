/**
 * A listener's serving certificate: loaded, proven, swapped in; and loaded again when its files change. Whatever the
 * new files hold, the last good certificate goes on serving until a better one has passed every test (D10, seed 000).
 */
import assert from "node:assert/strict";
import { constants } from "node:crypto";
import tls from "node:tls";
import { type Clock, timestampOf } from "../clock.ts";
import { Failure } from "../failure.ts";
import type { Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import { readText } from "../read-text.ts";
import { watchFiles } from "../watch-files.ts";
import { tryHandshake } from "./self-handshake.ts";
import { certificatesIn, checkPair, type ServingPair } from "./serving-pair.ts";

export type ServingCertificate = {
  /** The context for the next handshake. */
  readonly context: () => tls.SecureContext;
  /** Milliseconds since 1970. */
  readonly notAfter: () => number;
  /** Looks at the files now; the Failure says why the last good certificate stayed. */
  reload(): Promise<Failure | undefined>;
  stop(): void;
};

export type CertificateOptions = {
  /** As the journal names it. */
  readonly name: string;
  readonly certFile: string;
  readonly keyFile: string;
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

/** The PEM certificates of a file of authorities, and nothing else that may stand in it. EC and RSA alike. */
export function loadCa(file: string): string | Failure {
  const text = read(file);
  if (text instanceof Failure) return text;
  const certificates = certificatesIn(text);
  if (!(certificates instanceof Failure)) return certificates.map(String).join("");
  return new Failure(
    "bad-file",
    "proxy",
    `Cannot use "${file}": ${certificates.message}`,
    certificates.cause,
  );
}

/** What every serving TLS socket has in common. It belongs to the context, so a context must be made with it. */
export function serverTlsOptions(): tls.SecureContextOptions {
  return {
    minVersion: "TLSv1.2",
    // For TLS 1.2 only what RFC 9113 §9.2.2 and its appendix A leave (ECDHE, AEAD): a client that chose another would
    // have to be sent away with INADEQUATE_SECURITY. AES-128 first, as Go's servers and so the apiserver have it.
    ciphers: [
      "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384",
      "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
      "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305",
      "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384",
    ].join(":"),
    honorCipherOrder: true,
    // A client's renegotiation costs us a handshake each time; Node alone would allow three in ten minutes (A46).
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    // Sessions may be resumed as long as nobody is identified by a certificate. A listener that accepts client
    // certificates must have neither tickets nor a cache: a resumed session keeps the first one's identity (A47).
    // Without this name OpenSSL refuses every resumption on a socket that asks for client certificates.
    sessionIdContext: "watchkeeper",
  };
}

type Loaded = { readonly pair: ServingPair; readonly context: tls.SecureContext };

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
    const { certFile, keyFile, clock, reloadIntervalMs } = options;
    this.#stopWatching = watchFiles([certFile, keyFile], {
      clock,
      intervalMs: reloadIntervalMs,
      onChange: () => void this.reload(),
    });
  }

  readonly context = (): tls.SecureContext => this.#loaded().context;
  readonly notAfter = (): number => this.#loaded().pair.notAfter;

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
    const loaded = await load(this.#options).catch(unforeseen);
    if (this.#isStopped) return undefined;
    if (loaded instanceof Failure) return this.#refuse(loaded);
    this.#refused = "";
    if (isSame(loaded.pair, this.#current?.pair)) return undefined;
    this.#current = loaded;
    journal.write({ kind: "certificate.loaded", name, notAfter: timestampOf(loaded.pair.notAfter) });
    return undefined;
  }

  #refuse(failure: Failure): Failure {
    const { name, clock, journal } = this.#options;
    if (failure.message !== this.#refused)
      journal.write({ kind: "certificate.refused", name, problem: failure.message });
    this.#refused = failure.message;
    // Some problems pass without a change of the files: a date that is reached, a disk that answers again.
    this.#cancelRetry = clock.after(limits.certificateRetryMs, () => void this.reload());
    return failure;
  }
}

function isSame(pair: ServingPair, other: ServingPair | undefined): boolean {
  return pair.chain === other?.chain && pair.key === other.key;
}

/** Whatever a file has made Node throw: the last good certificate stays (seed 000). */
function unforeseen(reason: unknown): Failure {
  return new Failure("bad-file", "proxy", reason instanceof Error ? reason.message : String(reason), reason);
}

/** Everything up to the swap. */
async function load(options: CertificateOptions): Promise<Loaded | Failure> {
  const { certFile, keyFile, clock } = options;
  const refuse = ({ message, cause }: Failure): Failure =>
    new Failure("bad-file", "proxy", `Cannot use "${certFile}" with "${keyFile}": ${message}`, cause);
  const certText = read(certFile);
  if (certText instanceof Failure) return certText;
  const keyText = read(keyFile);
  if (keyText instanceof Failure) return keyText;
  const pair = checkPair(certText, keyText, clock.wall());
  if (pair instanceof Failure) return refuse(pair);
  const context = contextFor(pair);
  if (context instanceof Failure) return refuse(context);
  const failure = await tryHandshake(context, pair.fingerprint, clock);
  return failure === undefined ? { pair, context } : refuse(failure);
}

function read(file: string): string | Failure {
  const text = readText(file, limits.certificateBytes);
  if (!(text instanceof Failure)) return text;
  return new Failure("bad-file", "proxy", `Cannot use "${file}": ${text.message}`, text.cause);
}

function contextFor({ chain, key }: ServingPair): tls.SecureContext | Failure {
  try {
    return tls.createSecureContext({ ...serverTlsOptions(), cert: chain, key });
  } catch (reason) {
    return unforeseen(reason); // OpenSSL's own limits, such as an RSA key of 512 bits
  }
}
