/**
 * Clients of every kind that come and go: HTTP/2 and HTTP/1.1 requests, watches, upgraded sockets, TLS passthrough,
 * clients that stop reading, and clients that disconnect at any point. All of them leave when the round ends.
 */
import http2 from "node:http2";
import https from "node:https";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import tls from "node:tls";
import type { Random } from "../support/random.ts";
import { count, type Felt } from "./felt.ts";
import type { Ports } from "./stage.ts";

export type CrowdParts = {
  readonly ports: Ports;
  readonly ca: string;
  readonly felt: Felt;
  readonly random: Random;
};

/**
 * Names, users and programs come from small sets, so that the proxy's bounded memory of them is full after the first
 * round.
 */
const pools = { names: 100, users: 60, agents: 12 };
const answerMs = 15_000;

export class Crowd {
  readonly #parts: CrowdParts;
  readonly #over = new AbortController();
  readonly #open = new Set<{ destroy(): unknown }>();
  readonly #agent: https.Agent;
  #actors: Promise<unknown>[] = [];

  constructor(parts: CrowdParts) {
    this.#parts = parts;
    this.#agent = new https.Agent({ keepAlive: true, maxSockets: 8, ca: parts.ca });
  }

  start(): void {
    const times = (actors: number, turn: () => Promise<void>): Promise<void>[] =>
      Array.from({ length: actors }, () => this.#again(turn));
    this.#actors = [
      ...times(6, () => this.#asks()),
      ...times(2, () => this.#asksThrough()),
      ...times(4, () => this.#asksH1()),
      ...times(12, () => this.#watches()),
      ...times(3, () => this.#upgrades()),
      ...times(2, () => this.#stalls()),
      ...times(3, () => this.#breaksOff()),
    ];
  }

  /** Resolves when all clients have left. */
  async leave(): Promise<void> {
    this.#over.abort();
    this.#agent.destroy();
    for (const one of this.#open) one.destroy();
    await Promise.all(this.#actors);
  }

  async #again(turn: () => Promise<void>): Promise<void> {
    while (!this.#over.signal.aborted) {
      await turn();
      await this.#pause(50 + this.#parts.random.below(300));
    }
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#over.signal }).catch(() => {});
  }

  /** Counts a failure, unless the round is over, when all connections are closed. */
  #amiss(what: string): void {
    if (!this.#over.signal.aborted) count(this.#parts.felt.amiss, what);
  }

  #done(what: string): void {
    count(this.#parts.felt.done, what);
  }

  get #fields(): Record<string, string> {
    const { random } = this.#parts;
    return {
      authorization: `Bearer user-${random.below(pools.users)}`,
      "user-agent": `agent-${random.below(pools.agents)}/v1`,
    };
  }

  #connect(port: number, name = "localhost"): http2.ClientHttp2Session {
    const session = http2.connect(`https://${name}:${port}`, {
      createConnection: () => this.#dial(port, name, ["h2"]),
    });
    // The streams of the session report the error.
    session.on("error", () => {});
    this.#open.add(session);
    session.once("close", () => this.#open.delete(session));
    return session;
  }

  #dial(port: number, servername: string, ALPNProtocols: string[]): tls.TLSSocket {
    return tls.connect({ host: "127.0.0.1", port, servername, ca: this.#parts.ca, ALPNProtocols });
  }

  /** Sends some reads, lists and writes on a new session. */
  async #asks(): Promise<void> {
    const session = this.#connect(this.#parts.ports.kube);
    for (let left = 5 + this.#parts.random.below(40); left > 0 && isUsable(session); left -= 1) {
      await this.#ask(session, "h2");
      await this.#pause(this.#parts.random.below(150));
    }
    session.close();
  }

  async #asksThrough(): Promise<void> {
    const session = this.#connect(this.#parts.ports.through);
    for (let left = 5 + this.#parts.random.below(30); left > 0 && isUsable(session); left -= 1) {
      await this.#ask(session, "passthrough", true);
      await this.#pause(this.#parts.random.below(200));
    }
    session.close();
  }

  /**
   * `isMortal` is true for a session through passthrough, where the proxy cannot hide the loss of a backend; failures
   * are then not counted.
   */
  async #ask(session: http2.ClientHttp2Session, kind: string, isMortal = false): Promise<void> {
    const { random } = this.#parts;
    const name = `n${random.below(pools.names)}`;
    const collection = "/api/v1/namespaces/default/configmaps";
    const method = random.pick(["GET", "GET", "GET", "GET", "GET", "LIST", "POST", "DELETE"]);
    const isWrite = method === "POST" || method === "DELETE";
    const path = method === "LIST" || method === "POST" ? collection : `${collection}/${name}`;
    const head = { ":method": method.replace("LIST", "GET"), ":path": path, ...this.#fields };
    const stream = session.request({ ...head, "content-type": "application/json" });
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { x: "x".repeat(2000) } };
    stream.end(method === "POST" ? JSON.stringify(body) : undefined);
    const status = await outcomeOf(stream);
    // 409: the object exists already. 404: another client has deleted it.
    if (/^(200|201|404|409)$/.test(status)) this.#done(`${kind} ${isWrite ? "write" : "read"}`);
    else if (!isMortal) this.#amiss(`${kind} ${isWrite ? "write" : "read"}: ${status}`);
  }

  async #asksH1(): Promise<void> {
    const { ports, random } = this.#parts;
    const path = `/api/v1/namespaces/default/configmaps/n${random.below(pools.names)}`;
    const isImpatient = random.chance(0.1);
    const request = https.request({
      host: "localhost",
      port: ports.kube,
      path,
      agent: this.#agent,
      headers: this.#fields,
    });
    const status = await new Promise<string>((resolve) => {
      request.on("response", (answer) => {
        answer.resume();
        answer.on("close", () => resolve(String(answer.statusCode)));
      });
      request.on("error", (error) => resolve(error.message));
      request.setTimeout(answerMs, () => request.destroy(new Error("no answer")));
      request.end();
      if (isImpatient) setTimeout(() => request.destroy(), random.below(5)).unref();
    });
    if (/^(200|404)$/.test(status)) this.#done("h1 read");
    else if (!isImpatient) this.#amiss(`h1 read: ${status}`);
  }

  /** Keeps three watches open on one session for a while. Then closes the session, in half of the cases gracefully. */
  async #watches(): Promise<void> {
    const { ports, random } = this.#parts;
    const session = this.#connect(ports.kube);
    const path = "/api/v1/configmaps?watch=true&allowWatchBookmarks=true";
    for (let left = 3; left > 0; left -= 1) {
      const stream = session.request({ ":path": path, ...this.#fields });
      stream.on("data", () => this.#done("watch chunk"));
      stream.on("error", () => {});
    }
    await this.#pause(500 + random.below(8000));
    if (random.chance(0.5)) session.close();
    session.destroy();
    this.#done("watch session");
  }

  /** Sends data on an upgraded socket of the side cluster (stage.ts), which echoes it. */
  async #upgrades(): Promise<void> {
    const { ports, random } = this.#parts;
    const headers = { ...this.#fields, connection: "Upgrade", upgrade: "SPDY/3.1" };
    const request = https.request({
      createConnection: () => this.#dial(ports.kube, "side.test", ["http/1.1"]),
      host: "side.test",
      method: "POST",
      path: "/api/v1/namespaces/default/pods/p/exec",
      headers,
    });
    const socket = await new Promise<Duplex | undefined>((resolve) => {
      request.once("upgrade", (_answer, upgraded: Duplex) => resolve(upgraded));
      request.once("response", (answer) => {
        answer.resume();
        resolve(undefined);
      });
      request.once("error", () => resolve(undefined));
      request.setTimeout(answerMs, () => request.destroy());
      request.end();
    });
    // Configuration reloads remove the side cluster at times.
    if (socket === undefined) return this.#pause(500);
    this.#open.add(socket);
    socket.on("error", () => {});
    socket.on("data", () => this.#done("upgraded chunk"));
    for (let left = random.below(20); left > 0 && !socket.destroyed; left -= 1) {
      socket.write(Buffer.alloc(1 + random.below(20_000), "w"));
      await this.#pause(random.below(500));
    }
    this.#open.delete(socket);
    socket.destroy();
  }

  /** Requests much data and reads little of it. */
  async #stalls(): Promise<void> {
    const { ports, random } = this.#parts;
    const session = this.#connect(ports.kube, "side.test");
    const streams = Array.from({ length: 4 }, () =>
      session.request({ ":path": "/big/4000000", ...this.#fields }).on("error", () => {}),
    );
    await this.#pause(500 + random.below(3000));
    for (const stream of streams) if (random.chance(0.5)) stream.close(http2.constants.NGHTTP2_CANCEL);
    await this.#pause(500);
    session.destroy();
    this.#done("stalled session");
  }

  /** Disconnects in the middle of a handshake, a preface or a request. */
  async #breaksOff(): Promise<void> {
    const { ports, random } = this.#parts;
    const socket = this.#dial(ports.kube, "localhost", random.chance(0.5) ? ["h2"] : ["http/1.1"]);
    socket.on("error", () => {});
    if (random.chance(0.5)) socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    if (random.chance(0.3)) socket.write(Buffer.from([0, 0, 9, 1, 5, 0, 0, 0, 1, 0x82]));
    await this.#pause(random.below(120));
    socket.destroy();
    this.#done("broken off");
  }
}

function isUsable(session: http2.ClientHttp2Session): boolean {
  return !session.destroyed && !session.closed;
}

async function outcomeOf(stream: http2.ClientHttp2Stream): Promise<string> {
  let status = "no answer";
  stream.on("response", (head) => {
    status = String(head[":status"]);
  });
  stream.on("error", () => {});
  stream.resume();
  stream.setTimeout(answerMs, () => stream.close(http2.constants.NGHTTP2_CANCEL));
  await new Promise((resolve) => stream.once("close", resolve));
  return stream.rstCode === 0 ? status : `${status}, reset ${stream.rstCode}`;
}
