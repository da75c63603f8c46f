/**
 * Clients that send requests while files change under the proxy: on kept connections and on new ones, with a
 * certificate and with a bearer token, to both hosts, over HTTP/2 and HTTP/1.1. Unexpected responses are recorded.
 */
import http2 from "node:http2";
import https from "node:https";
import tls from "node:tls";
import type { Pair } from "../../../src/ops/pki/pki.ts";

export type LoadOptions = {
  readonly port: number;
  readonly trusted: string;
  readonly alice: Pair;
};

type Ask = { readonly serverName: string; readonly pair: Pair | undefined; readonly answer: string };

export class ReloadLoad {
  readonly #options: LoadOptions;
  readonly #timers: ReturnType<typeof setTimeout>[] = [];
  readonly #kept = new Map<number, http2.ClientHttp2Session>();
  readonly #sessions = new Set<http2.ClientHttp2Session>();
  /** Descriptions of the first few failures. */
  readonly faults: string[] = [];
  failed = 0;
  answered = 0;
  /** Number of connections opened. */
  connections = 0;
  /** Number of streams refused before processing. Every client retries these by itself. */
  resent = 0;
  #isStopped = false;

  constructor(options: LoadOptions) {
    this.#options = options;
    const { alice } = options;
    const vouched = { pair: alice, answer: "front-proxy alice devs" };
    const bearer = { pair: undefined, answer: "bearer t" };
    const asks: readonly Ask[] = [
      { serverName: "localhost", ...vouched },
      { serverName: "localhost", ...bearer },
      { serverName: "other.test", ...bearer },
    ];
    for (const [at, ask] of asks.entries()) {
      this.#repeat(60, () => this.#askKept(at, ask, 3));
      this.#repeat(150, () => this.#askOnce(ask));
    }
  }

  stop(): void {
    this.#isStopped = true;
    for (const timer of this.#timers) clearInterval(timer);
    for (const session of this.#sessions) session.destroy();
  }

  #repeat(ms: number, run: () => void): void {
    this.#timers.push(setInterval(run, ms));
  }

  #tls({ serverName, pair }: Ask): tls.ConnectionOptions {
    const { port, trusted } = this.#options;
    const own = pair === undefined ? {} : { cert: pair.certificate, key: pair.key };
    return { host: "127.0.0.1", port, servername: serverName, ca: trusted, ...own };
  }

  #session(at: number, ask: Ask): http2.ClientHttp2Session {
    const known = this.#kept.get(at);
    if (known !== undefined && !known.closed && !known.destroyed) return known;
    const session = http2.connect(`https://${ask.serverName}`, {
      createConnection: () => tls.connect({ ...this.#tls(ask), ALPNProtocols: ["h2"] }),
    });
    this.connections += 1;
    session.on("error", (error) => this.#fault(`a session: ${error.message}`));
    session.on("close", () => this.#sessions.delete(session));
    this.#sessions.add(session);
    this.#kept.set(at, session);
    return session;
  }

  #askKept(at: number, ask: Ask, tries: number): void {
    const stream = this.#session(at, ask).request({ ":path": "/api/v1/pods", ...fieldsOf(ask) });
    let status = 0;
    let body = "";
    stream.on("response", (head) => {
      status = Number(head[":status"]);
    });
    stream.on("data", (chunk: Buffer) => {
      body += chunk.toString();
    });
    stream.on("error", () => {});
    stream.on("close", () => {
      const isRefused = stream.rstCode === http2.constants.NGHTTP2_REFUSED_STREAM;
      if (isRefused && tries > 1 && !this.#isStopped) {
        this.resent += 1;
        this.#askKept(at, ask, tries - 1);
      } else this.#told(`kept h2 at ${ask.serverName}`, ask, `${status} ${body}`, stream.rstCode);
    });
  }

  /** Sends one request on a new connection, and closes it. */
  #askOnce(ask: Ask): void {
    this.connections += 1;
    const request = https.request({
      ...this.#tls(ask),
      path: "/api/v1/pods",
      headers: { host: ask.serverName, ...fieldsOf(ask) },
      agent: false,
    });
    request.on("error", (error) => this.#fault(`new h1 at ${ask.serverName}: ${error.message}`));
    request.on("response", (response) => {
      let body = "";
      response.on("data", (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on("end", () =>
        this.#told(`new h1 at ${ask.serverName}`, ask, `${response.statusCode} ${body}`, 0),
      );
    });
    request.end();
  }

  #told(who: string, ask: Ask, answer: string, code: number): void {
    if (answer === `200 ${ask.answer}`) this.answered += 1;
    else this.#fault(`${who}: "${answer}" (${code}) instead of "${ask.answer}"`);
  }

  #fault(what: string): void {
    if (this.#isStopped) return;
    this.failed += 1;
    if (this.faults.length < 10) this.faults.push(what);
  }
}

function fieldsOf({ pair }: Ask): Record<string, string> {
  return pair === undefined ? { authorization: "Bearer t" } : {};
}
