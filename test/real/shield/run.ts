/**
 * Thousands of clients list at the same time from an apiserver that has just started, with and without the shield. The
 * results are the apiserver's peak memory, the time until the last client has its list, and how long a leader's
 * renewals take in the meantime. `npm run test:shield`; SHIELD_CLIENTS sets the number of clients, SHIELD_OBJECTS and
 * SHIELD_BYTES the number and size of objects.
 */
import { readFileSync } from "node:fs";
import { type ClientHttp2Session, connect } from "node:http2";
import { isDeepStrictEqual } from "node:util";
import { order } from "../rig/ask.ts";
import { type Cluster, startCluster, tokenOf, users } from "../rig/cluster.ts";
import { clusterNeeds, lacking } from "../rig/parts.ts";
import { Proxy } from "../rig/proxy.ts";
import { markdown, quantile } from "../rig/table.ts";

const clients = Number(process.env["SHIELD_CLIENTS"] ?? 2000);
const objects = Number(process.env["SHIELD_OBJECTS"] ?? 1000);
const bytes = Number(process.env["SHIELD_BYTES"] ?? 1000);
/**
 * Clients on each connection, as behind a gateway. With a connection for each of 2,000 clients, TLS handshakes would
 * dominate the result.
 */
const perConnection = 20;
/** A round ends after this many milliseconds, even if some clients have no list yet. */
const mostMs = 150_000;
const renewEveryMs = 250;
const leasePath = "/apis/coordination.k8s.io/v1/namespaces/default/leases/leader";
const listPath = "/api/v1/namespaces/default/configmaps?resourceVersion=0";

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));
const userOf = (number: number): string => `client-${number}`;

type Reply = {
  readonly status: number;
  readonly bytes: number;
  readonly retryAfterMs: number;
  readonly text: string;
};

function ask(session: ClientHttp2Session, token: string, path: string, body?: string): Promise<Reply> {
  const { promise, resolve } = Promise.withResolvers<Reply>();
  const headers = { ":path": path, authorization: `Bearer ${token}`, "content-type": "application/json" };
  const stream = session.request({ ...headers, ":method": body === undefined ? "GET" : "PUT" });
  let [status, size, retryAfterMs, text] = [0, 0, 1000, ""];
  stream.on("response", (head) => {
    status = Number(head[":status"]);
    retryAfterMs = 1000 * Number(head["retry-after"] ?? 1);
  });
  stream.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size < 4096) text += chunk.toString();
  });
  stream.on("error", () => {});
  stream.on("close", () => resolve({ status, bytes: size, retryAfterMs, text }));
  stream.end(body);
  return promise;
}

/** Sends lists until one succeeds, as client-go does. Returns when it succeeded, and how many were rejected before. */
async function listing(session: ClientHttp2Session, token: string, until: number): Promise<Listed> {
  let [refused, failed] = [0, 0];
  while (performance.now() < until) {
    const reply = await ask(session, token, listPath);
    if (reply.status === 200 && reply.bytes > objects * bytes)
      return { at: performance.now(), refused, failed };
    if (reply.status === 429) refused += 1;
    else failed += 1;
    await pause(reply.retryAfterMs * (1 + Math.random() / 4));
  }
  return { at: Number.POSITIVE_INFINITY, refused, failed };
}

type Listed = { readonly at: number; readonly refused: number; readonly failed: number };

/** Starts a leader that renews its Lease. `stop` ends it and returns the duration of each renewal in milliseconds. */
function leading(session: ClientHttp2Session): { stop(): Promise<readonly number[]> } {
  const times: number[] = [];
  const state = { isOver: false };
  const { token } = users.admin;
  const run = async (): Promise<void> => {
    while (!state.isOver) {
      const from = performance.now();
      const read = await ask(session, token, leasePath);
      const written = read.status === 200 ? await ask(session, token, leasePath, read.text) : read;
      times.push(written.status < 300 ? performance.now() - from : Number.POSITIVE_INFINITY);
      await pause(renewEveryMs);
    }
  };
  const running = run();
  return {
    async stop() {
      state.isOver = true;
      await running;
      return times.toSorted((a, b) => a - b);
    },
  };
}

function peakMiB(pid: number): number {
  const [, kib = ""] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Math.round(Number(kib) / 1024);
}

async function round(cluster: Cluster, isEnabled: boolean): Promise<readonly string[]> {
  const apiserver = cluster.apiserver(0);
  const backends = [{ name: apiserver.name, url: apiserver.url }];
  const tls = { caFile: cluster.caFile, serverName: "kubernetes.default.svc" };
  const clusters = [{ name: "default", backends, tls, shield: { enabled: isEnabled } }];
  const { folder, pki } = cluster;
  const proxy = await Proxy.start({
    folder,
    pki,
    backends,
    name: `shield-${isEnabled}`,
    config: { clusters },
  });
  const open = (): ClientHttp2Session => connect(proxy.url, { ca: readFileSync(cluster.caFile) });
  const sessions = Array.from({ length: Math.ceil(clients / perConnection) }, open);
  const leader = open();
  for (const session of [...sessions, leader]) session.on("error", () => {});
  const sessionOf = (number: number): ClientHttp2Session => sessions[number % sessions.length] ?? leader;
  try {
    await proxy.settled(1);
    // The clients connect before the restart, so that an apiserver has already accepted their tokens.
    for (let at = 0; at < clients; at += 100)
      await Promise.all(
        Array.from({ length: Math.min(100, clients - at) }, (_, more) =>
          ask(sessionOf(at + more), tokenOf(userOf(at + more)), "/api"),
        ),
      );
    await apiserver.kill();
    await apiserver.restart();
    await proxy.settled(1);
    const renewals = leading(leader);
    const from = performance.now();
    const until = from + mostMs;
    const lists = Array.from({ length: clients }, (_, number) =>
      listing(sessionOf(number), tokenOf(userOf(number)), until),
    );
    const listed = await Promise.all(lists);
    const times = await renewals.stop();
    const seconds = listed.map(({ at }) => (at - from) / 1000).toSorted((a, b) => a - b);
    const sum = (of: (one: Listed) => number): number => listed.reduce((all, one) => all + of(one), 0);
    return [
      isEnabled ? "on" : "off",
      `${peakMiB(apiserver.pid)} MiB`,
      `${quantile(seconds, 0.5).toFixed(1)} s`,
      `${seconds.at(-1)?.toFixed(1)} s`,
      String(seconds.filter((one) => one === Number.POSITIVE_INFINITY).length),
      String(sum(({ refused }) => refused)),
      String(sum(({ failed }) => failed)),
      `${Math.round(quantile(times, 0.5))} ms`,
      `${Math.round(quantile(times, 0.99))} ms`,
      String(times.length),
    ];
  } finally {
    for (const session of [...sessions, leader]) session.destroy();
    await proxy.stop();
  }
}

async function main(): Promise<number> {
  const missing = clusterNeeds.map((need) => lacking(need)).filter((one) => one !== undefined);
  if (missing.length > 0) {
    process.stderr.write(`${missing.join("\n")}\n`);
    return 1;
  }
  const named = Object.fromEntries(Array.from({ length: clients }, (_, at) => [userOf(at), ["readers"]]));
  const cluster = await startCluster({ apiservers: 1, users: named });
  try {
    const create = (path: string, body: object): Promise<string> =>
      order(cluster.admin, { method: "POST", path, body });
    for (let number = 0; number < objects; number += 1)
      await create("/api/v1/namespaces/default/configmaps", {
        metadata: { name: `thing-${number}` },
        data: { text: "x".repeat(bytes) },
      });
    await create("/apis/coordination.k8s.io/v1/namespaces/default/leases", {
      metadata: { name: "leader" },
      spec: { holderIdentity: "one", leaseDurationSeconds: 15 },
    });
    const rows = [await round(cluster, false), await round(cluster, true)];
    const head = [
      "shield",
      "peak memory",
      "half of the lists",
      "last list",
      "without a list",
      "429s",
      "other failures",
      "renewal, median",
      "renewal, p99",
      "renewals",
    ];
    process.stdout.write(
      `${clients} clients, ${objects} objects of ${bytes} bytes\n${markdown(head, rows)}\n`,
    );
    const [, shielded = []] = rows;
    const p99Ms = Number.parseFloat(shielded[8] ?? "");
    return isDeepStrictEqual(shielded[4], "0") && p99Ms <= 1000 ? 0 : 1;
  } finally {
    await cluster.stop();
  }
}

process.exitCode = await main();
