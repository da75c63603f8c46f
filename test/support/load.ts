/**
 * Clients that behave like client-go, and count what the proxy's clients would notice: GETs at a steady rate, watches
 * that are reopened when they end, and upgraded sockets on which the backend must echo every message.
 */
import http2 from "node:http2";
import https from "node:https";
import type { Duplex } from "node:stream";

/** What the clients noticed. All counts except the first two are faults. */
export type Felt = {
  answered: number;
  /** Watches that ended without a reset, and were reopened at once. */
  rewatched: number;
  refused: number;
  failed: number;
  reset: number;
  /**
   * Watches after whose end client-go lists everything again: a reset, or an end within one second of the start of the
   * watch without any event.
   */
  relisted: number;
  /** Upgraded sockets that were closed. */
  cut: number;
};

export class Load {
  readonly felt: Felt = { answered: 0, rewatched: 0, refused: 0, failed: 0, reset: 0, relisted: 0, cut: 0 };
  readonly faults: string[] = [];
  readonly #url: string;
  readonly #ca: string;
  readonly #timers: ReturnType<typeof setInterval>[] = [];
  readonly #tunnels: Duplex[] = [];
  readonly #sessions = new Set<http2.ClientHttp2Session>();
  #isStopped = false;

  constructor(url: string, ca: string) {
    this.#url = url;
    this.#ca = ca;
  }

  /** Sends `gets` requests a second on one session. Every tenth request has a new session. */
  get(gets: number): void {
    const session = this.#shared();
    let count = 0;
    const ask = (): void => {
      count += 1;
      const isFresh = count % 10 === 0;
      const on = isFresh ? this.#connect() : session();
      this.#answer(on, `/api/v1/namespaces/x/pods/${count}`, () => {
        if (isFresh) on.close();
      });
    };
    this.#timers.push(setInterval(ask, 1000 / gets));
  }

  /** Opens this number of sessions, each with this number of watches. */
  watch(clients: number, watches: number, path: string): void {
    for (let client = 0; client < clients; client += 1) {
      const session = this.#shared();
      for (let watch = 0; watch < watches; watch += 1) this.#watch(session, path);
    }
  }

  #watch(session: () => http2.ClientHttp2Session, path: string): void {
    const stream = session().request({ ":path": path, authorization: "Bearer t" });
    const openedAt = performance.now();
    let events = 0;
    stream.on("data", (chunk: Buffer) => {
      events += chunk.toString().split("\n").length - 1;
    });
    stream.on("error", () => {});
    stream.on("close", () => {
      if (this.#isStopped) return;
      const isWell = stream.rstCode === 0 && (events > 0 || performance.now() - openedAt >= 1000);
      if (stream.rstCode !== 0) this.felt.reset += 1;
      if (isWell) this.felt.rewatched += 1;
      else this.#fault("relisted", `a watch ended with ${stream.rstCode} after ${events} events`);
      this.#watch(session, path);
    });
  }

  /** Opens an upgraded socket, and sends a message every 100 ms that the backend must echo. */
  async tunnel(path: string): Promise<void> {
    const headers = { connection: "Upgrade", upgrade: "SPDY/3.1", authorization: "Bearer t" };
    const request = https.request(`${this.#url}${path}`, {
      method: "POST",
      ca: this.#ca,
      headers,
      agent: false,
    });
    const socket = await new Promise<Duplex>((resolve, reject) => {
      request.once("upgrade", (_answer, upgraded: Duplex) => resolve(upgraded));
      request.once("response", (answer) => reject(new Error(`Upgrade refused: ${answer.statusCode}`)));
      request.once("error", reject);
      request.end();
    });
    let owed = 0;
    const timer = setInterval(() => {
      if (owed > 10) this.#fault("failed", "an upgraded socket does not answer");
      owed += 1;
      socket.write("x");
    }, 100);
    socket.on("data", (chunk: Buffer) => {
      owed -= chunk.length;
    });
    socket.on("error", () => {});
    socket.once("close", () => {
      clearInterval(timer);
      if (!this.#isStopped) this.felt.cut += 1;
    });
    this.#tunnels.push(socket);
  }

  stop(): void {
    this.#isStopped = true;
    for (const timer of this.#timers) clearInterval(timer);
    for (const socket of this.#tunnels) socket.destroy();
    for (const session of this.#sessions) session.destroy();
  }

  /** Returns a function that returns the same session on each call. After a GOAWAY or a close it opens a new one. */
  #shared(): () => http2.ClientHttp2Session {
    let session: http2.ClientHttp2Session | undefined;
    return () => {
      if (session === undefined || session.closed || session.destroyed) session = this.#connect();
      return session;
    };
  }

  #connect(): http2.ClientHttp2Session {
    const session = http2.connect(this.#url, { ca: this.#ca });
    this.#sessions.add(session);
    let isConnected = false;
    session.once("connect", () => {
      isConnected = true;
    });
    session.on("error", (error) => {
      if (!isConnected) this.#fault("refused", error.message);
    });
    session.on("close", () => this.#sessions.delete(session));
    return session;
  }

  #answer(session: http2.ClientHttp2Session, path: string, done: () => void): void {
    const stream = session.request({ ":path": path, authorization: "Bearer t" });
    let status = 0;
    stream.on("response", (head) => {
      status = Number(head[":status"]);
    });
    stream.resume();
    stream.on("error", () => {});
    stream.on("close", () => {
      if (!this.#isStopped && stream.rstCode !== 0) this.felt.reset += 1;
      if (status === 200 && stream.rstCode === 0) this.felt.answered += 1;
      else if (!this.#isStopped)
        this.#fault("failed", `a GET got ${status} and ended with ${stream.rstCode}`);
      done();
    });
  }

  #fault(kind: "refused" | "failed" | "relisted", what: string): void {
    this.felt[kind] += 1;
    this.faults.push(what);
  }
}
