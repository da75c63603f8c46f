/**
 * node bench/pulse.ts [--seconds 60] [--connections 600] [--warm 30]
 *
 * Measures the cost of health checks in an idle proxy with three backends and 200 upstream connections to each: the CPU
 * time of this process for PINGs on all connections and probes on fresh sockets. The backends are a process of their
 * own.
 */
import { spawn } from "node:child_process";
import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { parseArgs } from "node:util";
import { wallClock } from "../src/base/clock.ts";
import { Journal } from "../src/events/journal.ts";
import { Field } from "../src/h2/core/field.ts";
import type { StreamListener } from "../src/h2/core/stream-writer.ts";
import { createReadyProbe } from "../src/health/probes/ready.ts";
import { createAuthority } from "../src/ops/pki/pki.ts";
import { DataPath } from "../src/proxy/cluster/data-path.ts";
import { BufferLimiter } from "../src/proxy/overload/buffer-limiter.ts";
import { type BackendAddress, connectConnection, openSocket } from "../src/upstream/net/connect.ts";
import { poolKey } from "../src/upstream/pool/pool-key.ts";
import { verdicts } from "./targets.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    /**
     * Seconds to run before the measurement. By then V8 has compiled the code, as in a proxy that has run for weeks.
     */
    warm: { type: "string", default: "30" },
    connections: { type: "string", default: "600" },
    backend: { type: "boolean", default: false },
  },
});
const backends = ["cp-1", "cp-2", "cp-3"];
const key = poolKey("proven", "long");
const keepalive = { idleMs: 5000, intervalMs: 1000, count: 3 };
const watch = [
  new Field(":method", "GET"),
  new Field(":scheme", "https"),
  new Field(":path", "/api/v1/pods?watch=1"),
  new Field(":authority", "localhost"),
];

/** Ignores all calls: no backend sends anything on these watches. */
const silent: StreamListener = { headers() {}, data() {}, reset() {}, sent() {} };

if (values.backend) await backend();
else await measure();

/**
 * Runs the three backends: they accept upstream connections, answer PINGs and /readyz, and send nothing on watches.
 * Prints their ports and their CA certificate.
 */
async function backend(): Promise<void> {
  const authority = await createAuthority({ name: "bench", clock: wallClock });
  const { certificate: cert, key: own } = authority.issue({ name: "backend", hosts: ["localhost"] });
  const ports = backends.map(async () => {
    const server = createSecureServer({ cert, key: own, allowHTTP1: true }, (request, response) => {
      if (request.url === "/readyz") response.end("ok");
    });
    server.on("sessionError", () => {});
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return (server.address() as AddressInfo).port;
  });
  process.stdout.write(`${JSON.stringify({ ports: await Promise.all(ports), ca: authority.certificate })}\n`);
}

type Place = { readonly ports: readonly number[]; readonly ca: string };

async function measure(): Promise<void> {
  const child = spawn(process.execPath, [import.meta.filename, "--backend"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const place = await new Promise<Place>((resolve, reject) => {
      child.stdout.once("data", (line: Buffer) => resolve(JSON.parse(line.toString()) as Place));
      child.once("exit", () => reject(new Error("The backends ended early")));
    });
    const path = open(place);
    await settled(path, Number(values.connections));
    await tell(path, Number(values.seconds) * 1000);
  } finally {
    child.kill();
  }
  process.exit();
}

/** Opens the data path with real sockets, and one watch on each upstream connection. */
function open({ ports, ca }: Place): DataPath {
  const journal = new Journal(wallClock);
  const addressOf = (name: string): BackendAddress => {
    const port = ports[backends.indexOf(name)] ?? 0;
    return { name, host: "127.0.0.1", port, tls: { ca, serverName: "localhost" } };
  };
  const path = new DataPath({
    clock: wallClock,
    journal,
    connect: (name, owner) => connectConnection(addressOf(name), owner, { journal, keepalive }),
    connections: { streams: 1, warm: 1 },
    isPerClient: false,
    bufferLimiter: new BufferLimiter(wallClock, 1 << 30),
    ping: { intervalMs: 250, suspectAfterMs: 500, deadAfterMs: 2000, deadAfterWhenAllSilentMs: 10_000 },
    probes: {
      times: { intervalMs: 1000, timeoutMs: 3000 },
      random: Math.random,
      probe: createReadyProbe({
        path: () => "/readyz",
        open: (name) => openSocket(addressOf(name), "http/1.1"),
        seen() {},
      }),
    },
  });
  path.reconcile(backends);
  for (const name of backends) ask(path, name);
  return path;
}

/**
 * Requests this backend's share of the upstream connections. Requests each again whenever the pool refuses it, because
 * the pool dials only a few a second.
 */
function ask(path: DataPath, name: string): void {
  const connections = path.pools.poolOf(name);
  const share = Number(values.connections) / backends.length;
  const next = (): void =>
    connections?.wait({
      key,
      rekey: () => key,
      ready: (connection) => void connection.open(watch, true, silent),
      refused: () => void wallClock.after(50, next),
      suspected() {},
    });
  for (let index = 0; index < share; index += 1) next();
}

function poolOf(path: DataPath): number {
  return backends.reduce((sum, name) => sum + (path.pools.poolOf(name)?.openStreams ?? 0), 0);
}

async function settled(path: DataPath, count: number): Promise<void> {
  while (poolOf(path) < count) await rest(100);
  await rest(Number(values.warm) * 1000);
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => {
    wallClock.after(ms, resolve);
  });
}

async function tell(path: DataPath, ms: number): Promise<void> {
  const changes: string[] = [];
  path.journal.subscribe((entry) => {
    if (entry.kind === "backend.changed") changes.push(`${entry.backend} ${entry.to}: ${entry.reason}`);
  });
  const [before, startedAt] = [process.cpuUsage(), wallClock.now()];
  await rest(ms);
  const { user, system } = process.cpuUsage(before);
  const percent = (user + system) / 10 / (wallClock.now() - startedAt);
  process.stdout.write(`figure: ${percent.toFixed(1)} % of a core for ${poolOf(path)} connections\n`);
  for (const change of changes) process.stdout.write(`verdict changed: ${change}\n`);
  for (const line of verdicts("watchkeeper", { pulse: { watchkeeper: { percent } } }))
    process.stdout.write(`${line}\n`);
}
