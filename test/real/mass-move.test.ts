/**
 * One of two apiservers is killed, and all its watches move to the other one. Measures how long the moves take, and how
 * much slower the other apiserver meanwhile answers the requests that it gets without the proxy. No watch may end.
 * MOVED_WATCHES sets the number of watches. `attacks/whole/mass-move` is the same test with scripted backends.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { PartProcess } from "../support/herd-part.ts";
import { ask } from "./rig/ask.ts";
import { type Cluster, startCluster, users } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";
import { quantile } from "./rig/table.ts";

const test = suite("real/mass-move");
const real = testWith(test, clusterNeeds);
const watches = Number(process.env["MOVED_WATCHES"] ?? 2000);
const watchesEach = 10;
const address = "127.0.0.1";
const patienceMs = 60_000;
/** How long the other apiserver's response times are measured before the kill. */
const beforeMs = 10_000;
const askEveryMs = 10;
/** The p99 of the other apiserver may rise by this factor. On a busy machine, a p99 below `fastEnoughMs` passes, too. */
const mostTimes = 2;
const fastEnoughMs = 100;

/** Sends GETs straight to an apiserver, on one connection, until it is stopped. */
class Asking {
  readonly #session;
  readonly #timer: NodeJS.Timeout;
  #took: number[] = [];
  failed = 0;

  constructor(url: string, caFile: string, token: string) {
    this.#session = connect(url, { ca: readFileSync(caFile), servername: "kubernetes.default.svc" });
    this.#session.on("error", () => (this.failed += 1));
    const headers = {
      ":path": "/api/v1/namespaces/default/services/kubernetes",
      authorization: `Bearer ${token}`,
    };
    this.#timer = setInterval(() => {
      const beganAt = performance.now();
      const stream = this.#session.request(headers);
      stream.on("response", (head) => {
        if (head[":status"] !== 200) this.failed += 1;
      });
      stream.on("error", () => (this.failed += 1));
      stream.on("end", () => this.#took.push(performance.now() - beganAt));
      stream.resume();
    }, askEveryMs);
  }

  /** Returns the response times in ms since the last call, sorted. */
  take(): readonly number[] {
    const sorted = this.#took.toSorted((a, b) => a - b);
    this.#took = [];
    return sorted;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#session.destroy();
  }
}

/** Returns the number of watch streams at a backend, from the proxy's metrics. */
async function watchesAt(proxy: Proxy, backend: string): Promise<number> {
  const text = await (await fetch(`${proxy.metricsUrl}/metrics`)).text();
  const lines = text.matchAll(/^watchkeeper_backend_watches\{([^}]*)\} (\d+)$/gm);
  let sum = 0;
  for (const [, labels = "", count] of lines)
    if (labels.includes(`backend="${backend}"`)) sum += Number(count);
  return sum;
}

async function until(holds: () => Promise<boolean>): Promise<number> {
  const beganAt = performance.now();
  while (!(await holds())) {
    if (performance.now() - beganAt > patienceMs) return Number.POSITIVE_INFINITY;
    await sleep(50);
  }
  return Math.round(performance.now() - beganAt);
}

const folder = mkdtempSync(join(tmpdir(), "mass-move-"));
let cluster: Cluster;

test.before(async () => {
  if (!real.canRun) return;
  const names = Array.from({ length: watches / watchesEach }, (_, index) => `good-${address}-${index}`);
  const rows = [
    `${users.admin.token},admin,admin-uid,"system:masters"`,
    ...["good-old", ...names].map((name) => `${name},${name},${name},"readers"`),
  ];
  const file = join(folder, "tokens.csv");
  writeFileSync(file, `${rows.join("\n")}\n`, { mode: 0o600 });
  cluster = await startCluster({ apiservers: 2, flags: [`--token-auth-file=${file}`] });
});

test.after(async () => {
  rmSync(folder, { recursive: true });
  if (real.canRun) await cluster.stop();
});

real(
  `the watches of a killed apiserver, half of ${watches}, move, and the other apiserver keeps its speed`,
  async () => {
    const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
    const proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
    await proxy.settled(2);
    const stays = cluster.apiserver(0);
    const server = { url: stays.url, caFile: cluster.caFile, token: users.admin.token };
    const path = "/api/v1/namespaces/default/configmaps";
    const list = JSON.parse((await ask(server, { path: `${path}?limit=1` })).text);
    const version = String(list.metadata.resourceVersion);
    const herd = await PartProcess.start({
      role: "herd",
      port: proxy.port,
      ca: readFileSync(cluster.caFile, "utf8"),
      address,
      bearers: watches / watchesEach,
      watchesEach,
      perSecond: 1000,
      path: `${path}?watch=1&resourceVersion=${version}&allowWatchBookmarks=true`,
    });
    await until(async () => (await herd.state()).isDone);
    const asking = new Asking(stays.url, cluster.caFile, "good-old");
    await sleep(1000);
    asking.take();
    await sleep(beforeMs);
    const before = asking.take();
    const had = await watchesAt(proxy, stays.name);
    await cluster.apiserver(1).kill();
    asking.take();
    const tookMs = await until(async () => (await watchesAt(proxy, stays.name)) >= watches);
    const during = asking.take();
    await sleep(1000);
    const { counts, closed } = await herd.state();
    asking.stop();
    herd.stop();
    await proxy.stop();
    const [p99Before, p99During] = [quantile(before, 0.99), quantile(during, 0.99)];
    const shown = (sorted: readonly number[]): string =>
      `${sorted.length} GETs, p50 ${quantile(sorted, 0.5).toFixed(1)} ms, p99 ${quantile(sorted, 0.99).toFixed(1)} ms`;
    figure(`${watches - had} of ${watches} watches moved in ${tookMs} ms, ${closed} ended`);
    figure(`the other apiserver: ${shown(before)} before the kill, ${shown(during)} during the moves`);
    assert.equal(counts, { 200: watches });
    assert.is(closed, 0);
    assert.is(asking.failed, 0);
    assert.ok(
      watches - had > watches / 4,
      `${watches - had} of ${watches} watches were at the killed apiserver`,
    );
    assert.ok(tookMs < patienceMs);
    assert.ok(
      p99During <= Math.max(mostTimes * p99Before, fastEnoughMs),
      `p99 ${p99During} ms, before ${p99Before} ms`,
    );
  },
);

test.run();
