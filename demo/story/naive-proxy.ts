/**
 * A simple proxy for comparison with watchkeeper. It pipes streams of node:http2, and has the measures that simple
 * proxies take against unhealthy backends: round robin over the backends that are up, a new session in place of a lost
 * one, and checks on new connections (HAProxy's defaults: every 2 s, down after 3 failures, up after 2 successes).
 */
import http2 from "node:http2";
import { connect } from "node:tls";
import type { Clock } from "../../src/base/clock.ts";
import type { Failure } from "../../src/base/failure.ts";
import type { Pair } from "../../src/ops/pki/pki.ts";
import { bindLoopback } from "../apiserver/loopback-server.ts";
import type { DemoBackend } from "./files.ts";

const checkMs = 2_000;
const checkWithinMs = 2_000;
const fall = 3;
const rise = 2;
const redialMs = 500;

export type NaiveProxyOptions = {
  readonly backends: readonly DemoBackend[];
  readonly ca: string;
  readonly pair: Pair;
  readonly clock: Clock;
};

type OnChange = (backend: string, isUp: boolean, reason: string) => void;

export class NaiveProxy {
  readonly #server: http2.Http2SecureServer;
  readonly #backends: readonly NaiveBackend[];
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  #onChange: OnChange = () => {};
  #turn = 0;

  constructor(options: NaiveProxyOptions) {
    const { certificate, key } = options.pair;
    this.#backends = options.backends.map(
      (backend) => new NaiveBackend(backend, options, (...change) => this.#onChange(...change)),
    );
    this.#server = http2.createSecureServer({ cert: certificate, key });
    this.#server.on("stream", (stream, head) => this.#forward(stream, head));
    this.#server.on("session", (session) => {
      this.#sessions.add(session);
      session.on("error", () => {}); // Ignored, because "close" follows.
      session.on("close", () => this.#sessions.delete(session));
    });
  }

  onChange(run: OnChange): void {
    this.#onChange = run;
  }

  /** Starts to serve on a loopback port (0: any free one) and returns the port. */
  start(port = 0): Promise<number | Failure> {
    for (const backend of this.#backends) backend.start();
    return bindLoopback(this.#server, port);
  }

  /**
   * Uses this certificate for `host` (SNI) from now on.
   * @throws Node's error for an invalid certificate or key
   */
  show(host: string, { certificate, key }: Pair): void {
    this.#server.addContext(host, { cert: certificate, key });
  }

  stop(): void {
    this.#server.close();
    for (const session of this.#sessions) session.destroy();
    for (const backend of this.#backends) backend.stop();
  }

  #forward(stream: http2.ServerHttp2Stream, head: http2.IncomingHttpHeaders): void {
    const session = this.#nextSession();
    if (session === undefined) {
      stream.respond({ ":status": 503 }, { endStream: true });
      return;
    }
    const request = session.request({ ...head });
    stream.pipe(request);
    request.on("response", (answer) => {
      if (stream.destroyed) return;
      stream.respond({ ...answer });
      request.pipe(stream);
    });
    request.on("error", () => fail(stream));
    stream.on("error", () => {}); // Ignored, because "close" follows.
    stream.on("close", () => request.close(http2.constants.NGHTTP2_CANCEL));
  }

  #nextSession(): http2.ClientHttp2Session | undefined {
    for (let tries = 0; tries < this.#backends.length; tries += 1) {
      this.#turn += 1;
      const session = this.#backends[this.#turn % this.#backends.length]?.session;
      if (session !== undefined) return session;
    }
    return undefined;
  }
}

/** Ends a stream whose backend is lost. Sends status 502 if the response has not begun, otherwise resets the stream. */
function fail(stream: http2.ServerHttp2Stream): void {
  if (stream.destroyed) return;
  if (stream.headersSent) stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
  else stream.respond({ ":status": 502 }, { endStream: true });
}

class NaiveBackend {
  readonly #backend: DemoBackend;
  readonly #options: NaiveProxyOptions;
  readonly #onChange: OnChange;
  readonly #cancels = new Map<string, () => void>();
  readonly #sessionClosers = new Map<http2.ClientHttp2Session, () => void>();
  #session: http2.ClientHttp2Session | undefined;
  #isUp = true;
  #isStopped = false;
  /** Number of consecutive checks whose result contradicts the state that the proxy assumes for the backend. */
  #contrary = 0;

  constructor(backend: DemoBackend, options: NaiveProxyOptions, onChange: OnChange) {
    this.#backend = backend;
    this.#options = options;
    this.#onChange = onChange;
  }

  get session(): http2.ClientHttp2Session | undefined {
    return this.#isUp ? this.#session : undefined;
  }

  start(): void {
    this.#dial();
    this.#later("check", checkMs, () => this.#check());
  }

  stop(): void {
    this.#isStopped = true;
    for (const cancel of this.#cancels.values()) cancel();
    for (const drop of this.#sessionClosers.values()) drop();
  }

  #dial(): void {
    const session = this.#connect();
    session.on("connect", () => {
      this.#session = session;
    });
    session.on("close", () => {
      if (this.#session === session) this.#session = undefined;
      this.#later("dial", redialMs, () => this.#dial());
    });
  }

  #check(): void {
    this.#later("check", checkMs, () => this.#check());
    const session = this.#connect();
    let outcome = `no answer to /readyz within ${checkWithinMs / 1_000} s`;
    const stopWaiting = this.#options.clock.after(checkWithinMs, () => this.#sessionClosers.get(session)?.());
    session.on("error", (error) => (outcome = error.message));
    session.on("close", () => {
      stopWaiting();
      this.#learn(outcome === "ok", outcome);
    });
    const request = session.request({ ":path": "/readyz" });
    request.on("error", () => {}); // Ignored, because the session's "close" reports the outcome.
    request.on("response", ({ ":status": status }) => {
      outcome = status === 200 ? "ok" : `/readyz: ${status ?? 0}`;
      session.destroy();
    });
  }

  #learn(isGood: boolean, reason: string): void {
    this.#contrary = isGood === this.#isUp ? 0 : this.#contrary + 1;
    if (this.#contrary < (isGood ? rise : fall)) return;
    this.#contrary = 0;
    if (this.#isStopped) return;
    this.#isUp = isGood;
    this.#onChange(this.#backend.name, isGood, reason);
  }

  #connect(): http2.ClientHttp2Session {
    const { host, port } = this.#backend;
    const socket = connect({
      host,
      port,
      ca: this.#options.ca,
      rejectUnauthorized: true,
      ALPNProtocols: ["h2"],
    });
    const session = http2.connect(`https://${host}:${port}`, { createConnection: () => socket });
    this.#sessionClosers.set(session, () => {
      session.destroy();
      // Destroys the socket. Otherwise Node would keep a socket with an unanswered SYN for two more minutes.
      socket.destroy();
    });
    session.on("error", () => {}); // Ignored, because "close" follows.
    session.on("close", () => this.#sessionClosers.delete(session));
    return session;
  }

  #later(what: string, ms: number, run: () => void): void {
    if (this.#isStopped) return;
    this.#cancels.set(what, this.#options.clock.after(ms, run));
  }
}
