/**
 * A listener's serving certificate, which is reloaded when its files change. The last usable certificate stays in use
 * until a new one has passed every test (D10, incident 000).
 */
import { hash } from "node:crypto";
import { duplexPair } from "node:stream";
import tls from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Certificate } from "../../x509/certificate.ts";
import { type purposes, rootsIn } from "../../x509/verify.ts";
import { CaBundle, lastEndOf, readPem, unusable } from "./ca-bundle.ts";
import { type Reloading, ReloadingFile } from "./reloading-file.ts";
import { serverContext } from "./server-context.ts";
import { checkPair, type ServingPair } from "./serving-pair.ts";

export type CertificateOptions = Reloading & {
  readonly certFile: string;
  readonly keyFile: string;
  /** "client" for a certificate with which the proxy is a client of backends. Default: "server". */
  readonly use?: keyof typeof purposes;
  /** The CA bundle that verifies client certificates; undefined: client certificates are ignored. */
  readonly clientCaFile?: string | undefined;
  /**
   * True if clients may not resume TLS sessions, because the listener verifies client certificates or has several
   * hosts.
   */
  readonly wholeOnly?: boolean;
  /**
   * Called after a reload has replaced the client CA, or the certificate and key. `isOtherCa`: true if it was the
   * client CA.
   */
  readonly onSwap?: (isOtherCa: boolean) => void;
  /** Returns the reason why a new certificate and key cannot replace `was`; undefined if they can. */
  readonly prove?: (pair: ServingPair, was: ServingPair) => Promise<Failure | undefined>;
};

/** SHA-256 of each file. */
type Contents = { readonly certificate: string; readonly key: string };

type Loaded = {
  readonly pair: ServingPair;
  readonly contents: Contents;
  readonly context: tls.SecureContext;
  readonly clientCa: string | undefined;
  readonly clientCas: readonly Certificate[];
  /** The latest expiry among the client CAs, in ms since 1970; undefined if client certificates are ignored. */
  readonly clientCaNotAfter: number | undefined;
};

export class ServingCertificate {
  readonly #options: CertificateOptions;
  readonly #files: ReloadingFile<Loaded>;
  /**
   * The client CA is loaded separately from certificate and key, so that an unusable CA does not block a new
   * certificate.
   */
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

  /** Loads the certificate. Returns a Failure if it is unusable, and then does not watch its files. */
  static async load(options: CertificateOptions): Promise<ServingCertificate | Failure> {
    const { certificate, failure } = await ServingCertificate.keep(options);
    if (failure !== undefined) certificate.stop();
    return failure ?? certificate;
  }

  /**
   * Loads the certificate. If that fails, also returns the Failure, and keeps retrying, so that the listener can
   * meanwhile serve its other hosts.
   */
  static async keep(
    options: CertificateOptions,
  ): Promise<{ readonly certificate: ServingCertificate; readonly failure: Failure | undefined }> {
    const certificate = new ServingCertificate(options);
    certificate.#files.watch();
    return { certificate, failure: await certificate.reload() };
  }

  /** The certificate in use; undefined until a usable one was loaded. */
  get current(): Loaded | undefined {
    return this.#files.current;
  }

  /** Reads the files now. Returns a Failure if the previous certificate stays in use. */
  reload(): Promise<Failure | undefined> {
    return this.#files.reload();
  }

  stop(): void {
    this.#files.stop();
    this.#clientCa?.stop();
  }

  /** Loads certificate and key. If they replace other ones, they must also pass `prove`. */
  async #load(was: Loaded | undefined): Promise<Loaded | Failure> {
    const clientCa = await this.#loadClientCa();
    if (clientCa instanceof Failure) return clientCa;
    const loaded = await load({ use: "server", ...this.#options }, clientCa, was?.contents);
    if (loaded instanceof Failure || was === undefined) return loaded;
    const { certFile, keyFile, prove } = this.#options;
    const objection = isSamePair(loaded.pair, was.pair) ? undefined : await prove?.(loaded.pair, was.pair);
    return objection === undefined ? loaded : unusable(`"${certFile}" with "${keyFile}"`, objection);
  }

  async #loadClientCa(): Promise<string | undefined | Failure> {
    const { clientCaFile: file, name } = this.#options;
    if (file === undefined) return undefined;
    if (this.#clientCa !== undefined) {
      // If this fails, the present CAs stay in use, and the bundle itself journals the failure.
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

async function load(
  { certFile, keyFile, wholeOnly, clock, use }: CertificateOptions & { readonly use: keyof typeof purposes },
  clientCa: string | undefined,
  was: Contents | undefined,
): Promise<Loaded | Failure> {
  const certText = readPem(certFile);
  if (certText instanceof Failure) return certText;
  const keyText = readPem(keyFile);
  if (keyText instanceof Failure) return keyText;
  const contents = { certificate: hash("sha256", certText), key: hash("sha256", keyText) };
  const files = `"${certFile}" with "${keyFile}"${changedSince(was, contents)}`;
  const refuse = (failure: Failure): Failure => unusable(files, failure);
  const pair = checkPair(certText, keyText, clock.wall(), use);
  if (pair instanceof Failure) return refuse(pair);
  const clientCas = rootsIn(clientCa ?? "");
  if (clientCa !== undefined && clientCas.length === 0) return refuse(noClientCa);
  const context = serverContext(pair, { clientCas, wholeOnly: wholeOnly === true });
  if (context instanceof Failure) return refuse(context);
  const failure = await tryHandshake(context, pair.fingerprint, clock);
  return failure === undefined
    ? {
        pair,
        contents,
        clientCa,
        clientCas,
        clientCaNotAfter: clientCa === undefined ? undefined : lastEndOf(clientCa),
        context,
      }
    : refuse(failure);
}

const noClientCa = new Failure(
  "bad-file",
  "proxy",
  "no certificate of the client CA can be read by an apiserver",
);

/**
 * Returns a text that names the changed file, if only one of the two files differs from the last good pair; otherwise
 * "".
 */
function changedSince(was: Contents | undefined, { certificate, key }: Contents): string {
  if (was === undefined || (was.certificate === certificate) === (was.key === key)) return "";
  return ` (only the ${was.key === key ? "certificate" : "key"} file has changed)`;
}

/**
 * The last test of a certificate: a handshake with a client in this process. Returns undefined if that client gets the
 * certificate with this SHA-256 `fingerprint`.
 */
export function tryHandshake(
  context: tls.SecureContext,
  fingerprint: string,
  clock: Clock,
): Promise<Failure | undefined> {
  const [near, far] = duplexPair();
  const server = new tls.TLSSocket(near, { isServer: true, secureContext: context });
  // The test shows only that both ends agree on a version and a cipher. Whether clients trust the CA is not tested.
  const client = tls.connect({ socket: far, rejectUnauthorized: false });
  return new Promise((resolve) => {
    const end = (failure?: Failure): void => {
      cancel();
      client.destroy();
      server.destroy();
      resolve(failure);
    };
    const fail = (reason: Error): void => end(new Failure("bad-file", "proxy", reason.message, reason));
    const cancel = clock.after(limits.handshakeMs, () => fail(new Error("the handshake timed out")));
    // These listeners stay, because an "error" event without a listener would end the process.
    server.on("error", fail);
    client.on("error", fail);
    client.once("secureConnect", () => {
      if (client.getPeerX509Certificate()?.fingerprint256 === fingerprint) end();
      else fail(new Error("the handshake presents another certificate"));
    });
  });
}
