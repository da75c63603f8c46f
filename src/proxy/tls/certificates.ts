/**
 * A listener's serving certificate: loaded, proven, swapped in, and reloaded when its files change. Whatever the new
 * files contain, the last good certificate stays in use until a better one has passed every test (D10, seed 000).
 */
import { duplexPair } from "node:stream";
import tls from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { CaBundle, lastEndOf, readPem, unusable } from "./ca-bundle.ts";
import { type Reloading, ReloadingFile } from "./reloading-file.ts";
import { serverContext } from "./server-context.ts";
import { checkPair, type ServingPair } from "./serving-pair.ts";

export type CertificateOptions = Reloading & {
  readonly certFile: string;
  readonly keyFile: string;
  /** CA bundle that verifies client certificates; undefined: client certificates are ignored. */
  readonly clientCaFile?: string | undefined;
  /** True if no TLS session may be resumed at its address, because client certificates or host names matter there. */
  readonly wholeOnly?: boolean;
  /** Called after the pair, or the client CA, was replaced. */
  readonly onSwap?: (isOtherCa: boolean) => void;
  /** Why another pair is unsuitable as a replacement of `was`; undefined: no objection. */
  readonly prove?: (pair: ServingPair, was: ServingPair) => Promise<Failure | undefined>;
};

/** A good pair, and how it is served. */
type Loaded = {
  readonly pair: ServingPair;
  /** For the next handshake. */
  readonly context: tls.SecureContext;
  readonly clientCa: string | undefined;
  /** When the last of the client CA's certificates expires, in milliseconds since 1970. */
  readonly clientCaNotAfter: number | undefined;
};

export class ServingCertificate {
  readonly #options: CertificateOptions;
  readonly #files: ReloadingFile<Loaded>;
  /** Loaded separately, so that a bad client CA does not block a new certificate. */
  #clientCa: CaBundle | undefined;

  private constructor(options: CertificateOptions) {
    this.#options = options;
    const { certFile, keyFile, clientCaFile, onSwap } = options;
    this.#files = new ReloadingFile<Loaded>({
      ...options,
      files: [certFile, keyFile, ...(clientCaFile === undefined ? [] : [clientCaFile])],
      load: (was) => this.#load(was),
      isSame: (one, other) => isSamePair(one.pair, other.pair) && one.clientCa === other.clientCa,
      isNews: ({ pair }, was) => !isSamePair(pair, was.pair),
      notAfterMs: ({ pair }) => pair.notAfter,
      onSwap: ({ clientCa }, was) => onSwap?.(was.clientCa !== clientCa),
    });
  }

  /** Without a good certificate nothing can be served, and the Failure is the reason. */
  static async load(options: CertificateOptions): Promise<ServingCertificate | Failure> {
    const { certificate, failure } = await ServingCertificate.keep(options);
    if (failure !== undefined) certificate.stop();
    return failure ?? certificate;
  }

  /** The same where other hosts can be served without it: retried until there is a good one. */
  static async keep(
    options: CertificateOptions,
  ): Promise<{ readonly certificate: ServingCertificate; readonly failure: Failure | undefined }> {
    const certificate = new ServingCertificate(options);
    certificate.#files.watch();
    return { certificate, failure: await certificate.reload() };
  }

  /** Undefined while there has never been a good one. */
  get current(): Loaded | undefined {
    return this.#files.current;
  }

  /** Reads the files now; a Failure is the reason why the last good certificate stayed. */
  reload(): Promise<Failure | undefined> {
    return this.#files.reload();
  }

  stop(): void {
    this.#files.stop();
    this.#clientCa?.stop();
  }

  /** Loads the files. A replacement of something good must pass `prove`. */
  async #load(was: Loaded | undefined): Promise<Loaded | Failure> {
    const clientCa = await this.#loadClientCa();
    if (clientCa instanceof Failure) return clientCa;
    const loaded = await load(this.#options, clientCa);
    if (loaded instanceof Failure || was === undefined) return loaded;
    const { certFile, keyFile, prove } = this.#options;
    const objection = isSamePair(loaded.pair, was.pair) ? undefined : await prove?.(loaded.pair, was.pair);
    return objection === undefined ? loaded : unusable(`"${certFile}" with "${keyFile}"`, objection);
  }

  async #loadClientCa(): Promise<string | undefined | Failure> {
    const { clientCaFile: file, name } = this.#options;
    if (file === undefined) return undefined;
    if (this.#clientCa !== undefined) {
      // Whether the reload succeeded or not, its present CAs are good, and it has journaled a failure.
      await this.#clientCa.reload();
      return this.#clientCa.ca;
    }
    const loaded = CaBundle.load({
      ...this.#options,
      name: `${name} client CA`,
      file,
      prove: async () => undefined,
      onSwap: () => void this.reload(),
    });
    if (loaded instanceof Failure) return loaded;
    this.#clientCa = loaded;
    return loaded.ca;
  }
}

function isSamePair(one: ServingPair, other: ServingPair): boolean {
  return one.chain === other.chain && one.key === other.key;
}

/** Everything up to the swap. */
async function load(
  { certFile, keyFile, wholeOnly, clock }: CertificateOptions,
  clientCa: string | undefined,
): Promise<Loaded | Failure> {
  const refuse = (failure: Failure): Failure => unusable(`"${certFile}" with "${keyFile}"`, failure);
  const certText = readPem(certFile);
  if (certText instanceof Failure) return certText;
  const keyText = readPem(keyFile);
  if (keyText instanceof Failure) return keyText;
  const pair = checkPair(certText, keyText, clock.wall());
  if (pair instanceof Failure) return refuse(pair);
  const context = serverContext(pair, { clientCa, wholeOnly: wholeOnly === true });
  if (context instanceof Failure) return refuse(context);
  const failure = await tryHandshake(context, pair.fingerprint, clock);
  return failure === undefined
    ? { pair, clientCa, clientCaNotAfter: clientCa === undefined ? undefined : lastEndOf(clientCa), context }
    : refuse(failure);
}

/* The last proof of a serving certificate: a real TLS handshake with it, between two ends of a pipe in memory. */

/** Undefined if a client finished the handshake and got the certificate with this SHA-256 fingerprint. */
export function tryHandshake(
  context: tls.SecureContext,
  fingerprint: string,
  clock: Clock,
): Promise<Failure | undefined> {
  const [near, far] = duplexPair();
  const server = new tls.TLSSocket(near, { isServer: true, secureContext: context });
  // Which CAs clients trust is not checked here, only whether both ends can agree.
  const client = tls.connect({ socket: far, rejectUnauthorized: false });
  return new Promise((resolve) => {
    const end = (failure?: Failure): void => {
      cancel();
      client.destroy();
      server.destroy();
      resolve(failure);
    };
    const fail = (reason: Error): void => end(new Failure("bad-file", "proxy", reason.message, reason));
    const cancel = clock.after(limits.handshakeMs, () => fail(new Error("the handshake does not end")));
    // The listeners stay: a socket without a listener for "error" would end the process.
    server.on("error", fail);
    client.on("error", fail);
    client.once("secureConnect", () => {
      if (client.getPeerX509Certificate()?.fingerprint256 === fingerprint) end();
      else fail(new Error("the handshake shows another certificate"));
    });
  });
}
