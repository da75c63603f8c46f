/**
 * After a restart of the proxy: thousands of bearers that no backend has accepted yet, whose first requests are ten watches
 * each, before backends that send GOAWAY behind each 401 as a kube-apiserver does; alone, and beside a flood of watches with
 * invented tokens and with none. `npm run test:herd` is the full size: BEARERS=5000 at RATE=3000 watches a second.
 */
import http2 from "node:http2";
import net, { type AddressInfo } from "node:net";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { figure } from "../../support/figure.ts";
import { testPki } from "../../support/pki.ts";
import { ProxyProcess } from "../../support/proxy-process.ts";

const test = suite("attacks/whole/herd");

const bearers = Number(process.env["BEARERS"] ?? 300);
const perSecond = Number(process.env["RATE"] ?? 2000);
const watchesEach = 10;
const watchPath = "/api/v1/pods?watch=1";
/** Bearers that share a connection, so that client and backends fit beside the proxy. */
const bearersPerSession = 10;

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

type Backend = {
  readonly name: string;
  readonly port: number;
  readonly ca: string;
  goAways: number;
  stop(): void;
};

async function startBackend(name: string): Promise<Backend> {
  const { authority, serving } = await testPki();
  const server = http2.createSecureServer({
    cert: serving.certificate,
    key: serving.key,
    allowHTTP1: true,
    settings: { maxConcurrentStreams: 100 },
  });
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => {});
    session.on("close", () => sessions.delete(session));
  });
  server.on("sessionError", () => {});
  server.on("request", (request, response) => {
    if (request.httpVersionMajor === 1) response.end("ok");
  });
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    const isKnown = headers.authorization?.startsWith("Bearer good") === true;
    stream.respond({ ":status": isKnown ? 200 : 401, "content-type": "application/json" });
    if (isKnown && String(headers[":path"]).includes("watch=1")) return;
    stream.end("{}\n");
    if (isKnown || stream.session === undefined || stream.session.closed) return;
    backend.goAways += 1;
    stream.session.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const backend: Backend = {
    name,
    port: (server.address() as AddressInfo).port,
    ca: authority.certificate,
    goAways: 0,
    stop() {
      for (const session of sessions) session.destroy();
      server.close();
    },
  };
  return backend;
}

/** What was answered, how often, and how late at most. */
class Tally {
  readonly counts: Record<string, number> = {};
  asked = 0;
  slowestMs = 0;
  readonly #late: number[] = [];

  ask(session: http2.ClientHttp2Session, path: string, authorization?: string): void {
    const own = authorization === undefined ? {} : { authorization };
    const askedAt = performance.now();
    this.asked += 1;
    let isTold = false;
    const told = (what: string): void => {
      if (isTold) return;
      isTold = true;
      this.counts[what] = (this.counts[what] ?? 0) + 1;
      this.slowestMs = Math.max(this.slowestMs, performance.now() - askedAt);
      this.#late.push(performance.now() - askedAt);
    };
    const stream = session.request({ ":path": path, ...own });
    stream.on("response", (head) => told(String(head[":status"])));
    stream.on("error", () => {});
    stream.on("close", () => told(`reset ${stream.rstCode}`));
    stream.resume();
  }

  get told(): number {
    return this.#late.length;
  }

  get text(): string {
    const sorted = this.#late.toSorted((a, b) => a - b);
    const half = sorted[sorted.length >> 1] ?? 0;
    return `${JSON.stringify(this.counts)} of ${this.asked}, half within ${Math.round(half)} ms, all within ${Math.round(this.slowestMs)} ms`;
  }
}

type Stage = {
  readonly proxy: ProxyProcess;
  readonly backends: readonly Backend[];
  /** A connection from this loopback address. */
  session(address: string): http2.ClientHttp2Session;
  stop(): Promise<void>;
};

async function stage(): Promise<Stage> {
  const backends = await Promise.all(["a", "b"].map(startBackend));
  const proxy = await ProxyProcess.start({
    targets: backends.map(({ name, port, ca }) => ({ name, port, ca })),
  });
  const { port, ca } = proxy.place;
  const sessions: http2.ClientHttp2Session[] = [];
  return {
    proxy,
    backends,
    session(address) {
      const session = http2.connect(`https://localhost:${port}`, {
        createConnection: () =>
          tls.connect({
            socket: net.connect({ host: "127.0.0.1", port, localAddress: address }),
            ca,
            servername: "localhost",
            ALPNProtocols: ["h2"],
          }),
      });
      session.on("error", () => {});
      sessions.push(session);
      return session;
    },
    async stop() {
      for (const session of sessions) session.destroy();
      await proxy.stop();
      for (const backend of backends) backend.stop();
    },
  };
}

/** Opens the watches of all bearers at the rate; resolves when each is answered. */
async function herd({ session }: Stage): Promise<Tally> {
  const tally = new Tally();
  const beganAt = performance.now();
  let own: http2.ClientHttp2Session | undefined;
  for (let bearer = 0; bearer < bearers; bearer += 1) {
    if (own === undefined || bearer % bearersPerSession === 0) own = session("127.0.0.1");
    for (let watch = 0; watch < watchesEach; watch += 1) tally.ask(own, watchPath, `Bearer good-${bearer}`);
    const aheadMs = ((bearer + 1) * watchesEach * 1000) / perSecond - (performance.now() - beganAt);
    if (aheadMs > 5) await pause(aheadMs);
  }
  for (let tries = 0; tries < 1200 && tally.told < tally.asked; tries += 1) await pause(50);
  figure(`${tally.asked} watches in ${Math.round(performance.now() - beganAt)} ms: ${tally.text}`);
  return tally;
}

test(`${bearers} new bearers begin with ${watchesEach} watches each at ${perSecond} a second: none is refused`, async () => {
  const own = await stage();
  const tally = await herd(own);
  assert.equal(tally.counts, { 200: bearers * watchesEach });
  const late = new Tally();
  late.ask(own.session("127.0.0.4"), watchPath, "Bearer good-late");
  for (let tries = 0; tries < 100 && late.told === 0; tries += 1) await pause(20);
  assert.equal(late.counts, { 200: 1 });
  assert.equal((await own.proxy.state()).faults, []);
  await own.stop();
});

test("A43: beside a flood of invented tokens from another address the herd and the proven are served all the same", async () => {
  const own = await stage();
  const [flood, proven] = [new Tally(), new Tally()];
  const known = own.session("127.0.0.3");
  proven.ask(known, watchPath, "Bearer good-old");
  await pause(500);
  const attackers = Array.from({ length: 10 }, () => own.session("127.0.0.2"));
  let count = 0;
  const attack = setInterval(() => {
    for (const attacker of attackers) {
      if (attacker.destroyed || attacker.closed) continue;
      count += 1;
      flood.ask(attacker, watchPath, count % 2 === 0 ? undefined : `Bearer invented-${count}`);
    }
    proven.ask(known, "/api/v1/pods", "Bearer good-old");
  }, 20);
  const tally = await herd(own);
  clearInterval(attack);
  await pause(1000);
  figure(
    `flood ${flood.text}; proven ${proven.text}; ${own.backends.map(({ goAways }) => goAways).join()} GOAWAYs`,
  );
  assert.equal(tally.counts, { 200: bearers * watchesEach });
  assert.equal(Object.keys(proven.counts), ["200"]);
  // What is more than one address's share is refused.
  assert.equal(
    Object.keys(flood.counts).filter((status) => !["401", "429", "503"].includes(status)),
    [],
  );
  assert.equal((await own.proxy.state()).faults, []);
  await own.stop();
});

test.run();
