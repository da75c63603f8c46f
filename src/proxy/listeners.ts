/**
 * All listeners, as the configuration has them. A changed configuration opens what is new, lets go of what is gone,
 * and does not touch the rest; one that cannot be opened leaves everything as it was (D10).
 */
import { networksOf } from "../address.ts";
import type { ListenerConfig } from "../config.ts";
import { Failure } from "../failure.ts";
import { loadCertificate, type ServingCertificate, serverTlsOptions } from "./certificates.ts";
import { Listener, type ListenParts } from "./listen.ts";
import type { Keepalive } from "./socket.ts";

type Opened = {
  readonly config: ListenerConfig;
  readonly listener: Listener;
  readonly certificate: ServingCertificate | undefined;
  readonly address: string;
};

export class Listeners {
  readonly #parts: ListenParts;
  readonly #keepalive: Keepalive;
  #opened: readonly Opened[] = [];
  #pastHandshakeErrors = 0;
  /** Closed by a reload, with clients that have not gone yet. */
  readonly #leaving = new Set<Listener>();

  constructor(parts: ListenParts, keepalive: Keepalive) {
    this.#parts = parts;
    this.#keepalive = keepalive;
  }

  /** Where each is bound, by its name: "127.0.0.1:8443". */
  get addresses(): ReadonlyMap<string, string> {
    return new Map(this.#opened.map(({ config, address }) => [config.name, address]));
  }

  get sessionCount(): { readonly h2: number; readonly h1: number } {
    const counts = this.#all().map((listener) => listener.sessionCount);
    return {
      h2: counts.reduce((sum, { h2 }) => sum + h2, 0),
      h1: counts.reduce((sum, { h1 }) => sum + h1, 0),
    };
  }

  /** TLS handshakes that failed, on listeners that are open now or were since the start. */
  get handshakeErrors(): number {
    return this.#all().reduce((sum, listener) => sum + listener.handshakeErrors, this.#pastHandshakeErrors);
  }

  get certificates(): readonly { readonly name: string; readonly notAfterMs: number }[] {
    return this.#opened.flatMap(({ config, certificate }) =>
      certificate === undefined ? [] : [{ name: config.name, notAfterMs: certificate.notAfter() }],
    );
  }

  /** Opens and closes until what is open is what is wanted, or says why not; then nothing has changed. */
  async reconcile(wanted: readonly ListenerConfig[]): Promise<Failure | undefined> {
    const stay = this.#opened.filter(({ config }) => wanted.some((one) => isSame(one, config)));
    const leave = this.#opened.filter((opened) => !stay.includes(opened));
    // A changed listener mostly keeps its port, so the old socket has to be closed before the new one is bound.
    for (const { listener } of leave) listener.close();
    const come = wanted.filter((one) => !stay.some(({ config }) => isSame(one, config)));
    const newcomers = await this.#openAll(come);
    if (newcomers instanceof Failure) {
      this.#opened = [...stay, ...(await this.#reopen(leave))];
      return newcomers;
    }
    for (const opened of leave) this.#letGo(opened);
    this.#opened = [...stay, ...newcomers];
    return undefined;
  }

  /** Accept nothing more; what is open stays. */
  close(): void {
    for (const listener of this.#all()) listener.close();
  }

  /** Send every client away gracefully. */
  drain(): void {
    for (const listener of this.#all()) listener.drain();
  }

  /** End everything now. */
  cut(): void {
    for (const { certificate } of this.#opened) certificate?.stop();
    for (const listener of this.#all()) {
      listener.close();
      listener.cut();
    }
  }

  #all(): readonly Listener[] {
    return [...this.#opened.map(({ listener }) => listener), ...this.#leaving];
  }

  /** Its clients are sent away in two steps, and may finish what they have; the process' own end cuts the last. */
  #letGo({ listener, certificate }: Opened): void {
    certificate?.stop();
    const forget = (): void => {
      this.#leaving.delete(listener);
      // A counter never falls, also when its listener has gone.
      this.#pastHandshakeErrors += listener.handshakeErrors;
      listener.cut();
    };
    if (listener.socketCount === 0) return forget();
    this.#leaving.add(listener);
    listener.onEmpty = forget;
    listener.drain();
  }

  /** What was closed for newcomers that failed: its port was free a moment ago, and its clients are still there. */
  async #reopen(left: readonly Opened[]): Promise<readonly Opened[]> {
    const outcomes = await Promise.all(
      left.map(async (opened) => ((await opened.listener.start()) instanceof Failure ? undefined : opened)),
    );
    return outcomes.filter((opened) => opened !== undefined);
  }

  async #openAll(wanted: readonly ListenerConfig[]): Promise<readonly Opened[] | Failure> {
    const outcomes = await Promise.all(wanted.map((one) => this.#open(one)));
    const opened = outcomes.filter((outcome): outcome is Opened => !(outcome instanceof Failure));
    const failure = outcomes.find((outcome) => outcome instanceof Failure);
    if (failure === undefined) return opened;
    for (const { listener, certificate } of opened) {
      certificate?.stop();
      listener.close();
      listener.cut();
    }
    return failure;
  }

  async #open(config: ListenerConfig): Promise<Opened | Failure> {
    const { name, tls } = config;
    const { clock, journal } = this.#parts;
    const certificate =
      tls === undefined ? undefined : await loadCertificate({ name, clock, journal, ...tls });
    if (certificate instanceof Failure) return certificate;
    const listener = new Listener(
      {
        name,
        ...config.address,
        tls: certificate && { context: certificate.context, options: serverTlsOptions() },
        trustedForwarders: networksOf(config.trustedForwarders),
        keepalive: this.#keepalive,
      },
      this.#parts,
    );
    const address = await listener.start();
    if (!(address instanceof Failure)) return { config, listener, certificate, address };
    certificate?.stop();
    return address;
  }
}

function isSame(one: ListenerConfig, other: ListenerConfig): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
