/**
 * Runs one role of the herd test in a process of its own (started by herd-part.ts). The roles are:
 * - an apiserver that accepts bearer tokens beginning with "good", and sends GOAWAY after each 401
 * - the herd: many clients that open their watches at once
 * - a flood of watches without an accepted credential
 * - a proven client, whose credential an apiserver has accepted before
 */
import http2 from "node:http2";
import net, { type AddressInfo } from "node:net";
import tls from "node:tls";
import { waitedBy } from "./cpu.ts";
import type { HerdPart, PartState } from "./herd-part.ts";

const firstAgent = "kube-controller-manager";
const watchPath = "/api/v1/pods?watch=1";
/** Number of bearer tokens that share a connection, so that no process runs out of file descriptors. */
const bearersPerSession = 10;

const part = JSON.parse(process.argv[2] ?? "{}") as HerdPart;
const counts: Record<string, number> = {};
const late: number[] = [];
let asked = 0;
let askedFirst = 0;
let closed = 0;
let goAways = 0;
let slowestOwnMs = 0;
let isDone = false;

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

function stateNow(): PartState {
  const sorted = late.toSorted((a, b) => a - b);
  return {
    asked,
    askedFirst,
    closed,
    counts,
    halfMs: Math.round(sorted[sorted.length >> 1] ?? 0),
    slowestMs: Math.round(sorted.at(-1) ?? 0),
    slowestOwnMs: Math.round(slowestOwnMs),
    goAways,
    isDone,
  };
}

function connect(port: number, ca: string, address: string): http2.ClientHttp2Session {
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
  return session;
}

function ask(
  session: http2.ClientHttp2Session,
  path: string,
  { bearer, agent }: { bearer: string | undefined; agent?: string },
  done?: (tookMs: number) => void,
): void {
  const own = {
    ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    ...(agent === undefined ? {} : { "user-agent": agent }),
  };
  const askedAt = performance.now();
  asked += 1;
  let isTold = false;
  const told = (what: string): void => {
    if (isTold) return;
    isTold = true;
    counts[what] = (counts[what] ?? 0) + 1;
    late.push(performance.now() - askedAt);
    done?.(performance.now() - askedAt);
  };
  const stream = session.request({ ":path": path, ...own });
  stream.on("response", (head) => told(String(head[":status"])));
  stream.on("error", () => {});
  stream.on("close", () => {
    closed += 1;
    told(`reset ${stream.rstCode}`);
  });
  stream.resume();
}

/** Opens the watches of all bearer tokens at `perSecond`. The herd is done when each watch has a response. */
async function herd(herdPart: HerdPart): Promise<void> {
  const { port, ca, address, bearers, watchesEach, perSecond, path = watchPath, firstWatches = 0 } = herdPart;
  const firstEach = Math.floor((bearers * watchesEach) / Math.max(1, firstWatches));
  const beganAt = performance.now();
  let own: http2.ClientHttp2Session | undefined;
  for (let bearer = 0; bearer < bearers; bearer += 1) {
    if (own === undefined || bearer % bearersPerSession === 0) own = connect(port, ca, address);
    for (let watch = 0; watch < watchesEach; watch += 1) {
      const isFirst = firstWatches > 0 && (bearer * watchesEach + watch) % firstEach === 0;
      const agent = isFirst ? `${firstAgent}/v1.36.1` : "agent/1";
      ask(own, path, { bearer: `good-${address}-${bearer}`, agent });
    }
    const aheadMs = ((bearer + 1) * watchesEach * 1000) / perSecond - (performance.now() - beganAt);
    if (aheadMs > 5) await pause(aheadMs);
  }
  while (late.length < asked) await pause(20);
  isDone = true;
}

/**
 * Sends requests on ten connections, which are reopened when they end. Half of the requests have an invented token,
 * half have none.
 */
function flood({ port, ca, address, perSecond }: HerdPart): void {
  const sessions: http2.ClientHttp2Session[] = [];
  setInterval(() => {
    for (let count = 0; count < perSecond / 50; count += 1) {
      const at = count % 10;
      let session = sessions[at];
      if (session === undefined || session.closed || session.destroyed) session = connect(port, ca, address);
      sessions[at] = session;
      ask(session, watchPath, { bearer: asked % 2 === 0 ? undefined : `invented-${asked}` });
    }
  }, 20);
}

function proven({ port, ca, address, perSecond, pids = [] }: HerdPart): void {
  const waits = (): number[] => [waitedBy("self"), ...pids.map(waitedBy)];
  const session = connect(port, ca, address);
  ask(session, watchPath, { bearer: "good-old" });
  setInterval(() => {
    const before = waits();
    ask(session, "/api/v1/pods", { bearer: "good-old" }, (tookMs) => {
      // The processes may have waited at the same time, so only the longest wait is subtracted.
      const waitedMs = Math.max(...waits().map((ms, at) => ms - (before[at] ?? ms)));
      slowestOwnMs = Math.max(slowestOwnMs, tookMs - waitedMs);
    });
  }, 1000 / perSecond);
}

async function backend({ certificate, key }: HerdPart): Promise<number> {
  const server = http2.createSecureServer({
    cert: certificate,
    key,
    allowHTTP1: true,
    settings: { maxConcurrentStreams: 100 },
  });
  const isLeaving = new WeakSet<http2.Http2Session>();
  server.on("session", (session) => session.on("error", () => {}));
  server.on("sessionError", () => {});
  server.on("request", (request, response) => {
    if (request.httpVersionMajor === 1) response.end("ok");
  });
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    asked += 1;
    if (headers["user-agent"]?.startsWith(firstAgent) === true) askedFirst += 1;
    if (headers.authorization?.startsWith("Bearer good") !== true) setTimeout(() => reject(stream), 5);
    else {
      stream.respond({ ":status": 200, "content-type": "application/json" });
      if (!String(headers[":path"]).includes("watch=1")) stream.end("{}\n");
    }
  });
  /** Rejects as an apiserver does: 401, GOAWAY, and one second later the end of the connection (Go's goAwayTimeout). */
  function reject(stream: http2.ServerHttp2Stream): void {
    const { session } = stream;
    if (stream.destroyed || session === undefined) return;
    stream.respond({ ":status": 401, "content-type": "application/json" });
    stream.end("{}\n");
    if (session.closed || isLeaving.has(session)) return;
    isLeaving.add(session);
    goAways += 1;
    session.goaway();
    setTimeout(() => session.close(), 1000);
  }
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

process.on("message", () => process.send?.(stateNow()));
process.on("disconnect", () => process.exit(0));
let port = 0;
if (part.role === "backend") port = await backend(part);
else if (part.role === "herd") void herd(part);
else if (part.role === "flood") flood(part);
else proven(part);
process.send?.(port);
