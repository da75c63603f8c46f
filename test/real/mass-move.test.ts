/**
 * One of two apiservers is killed, and all its watches move to the other one. Measures how long the moves take, and how
 * much slower the other apiserver meanwhile answers the requests that it gets without the proxy. No watch may end.
 * MOVED_WATCHES sets the number of watches. `attacks/whole/mass-move` is the same test with scripted backends.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { PartProcess } from "../support/herd-part.ts";
import { Asking } from "./load/asking.ts";
import { Client, type Heard } from "./load/client.ts";
import { ask } from "./rig/ask.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";
import { quantile } from "./rig/table.ts";
import { until } from "./rig/until.ts";

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

/** Returns the number of watch streams at a backend, from the proxy's metrics. */
async function watchesAt(proxy: Proxy, backend: string): Promise<number> {
  const text = await (await fetch(`${proxy.metricsUrl}/metrics`)).text();
  const lines = text.matchAll(/^watchkeeper_backend_watches\{([^}]*)\} (\d+)$/gm);
  let sum = 0;
  for (const [, labels = "", count] of lines)
    if (labels.includes(`backend="${backend}"`)) sum += Number(count);
  return sum;
}

/** Returns the sorted response times in ms of the requests that ended from `from` to `to` (ms since the epoch). */
function tookBetween(asking: Asking<undefined>, from: number, to: number): readonly number[] {
  return asking.heard
    .filter(({ heard: { endedAt } }) => endedAt >= from && endedAt <= to)
    .map(({ heard: { askedAt, endedAt } }) => endedAt - askedAt)
    .toSorted((a, b) => a - b);
}

const isServed = ({ status, ending }: Heard): boolean => status === 200 && ending === "whole";

let cluster: Cluster;

test.before(async () => {
  if (!real.canRun) return;
  const names = Array.from({ length: watches / watchesEach }, (_, index) => `good-${address}-${index}`);
  cluster = await startCluster({ apiservers: 2, bearers: ["good-old", ...names] });
});

test.after(async () => {
  if (real.canRun) await cluster.stop();
});

real(
  `the watches of a killed apiserver, half of ${watches}, move, and the other apiserver keeps its speed`,
  async () => {
    const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
    const proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
    await proxy.settled(2);
    const stays = cluster.apiserver(0);
    const server = { ...cluster.admin, url: stays.url };
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
    await until("the watches of the herd", async () => (await herd.state()).isDone, patienceMs);
    const question = { path: "/api/v1/namespaces/default/services/kubernetes" };
    const direct = new Client({ ...server, token: "good-old" });
    const asking = new Asking([direct], askEveryMs, () => ({ tag: undefined, question }));
    await sleep(1000);
    const beganAt = Date.now();
    await sleep(beforeMs);
    const before = tookBetween(asking, beganAt, Date.now());
    const had = await watchesAt(proxy, stays.name);
    await cluster.apiserver(1).kill();
    const killedAt = Date.now();
    const isMoved = async (): Promise<boolean> => (await watchesAt(proxy, stays.name)) >= watches;
    await until("the moved watches", isMoved, patienceMs);
    const tookMs = Date.now() - killedAt;
    const during = tookBetween(asking, killedAt, Date.now());
    await sleep(1000);
    const { counts, closed } = await herd.state();
    await asking.stop();
    direct.close();
    herd.stop();
    await proxy.stop();
    const [p99Before, p99During] = [quantile(before, 0.99), quantile(during, 0.99)];
    const shown = (sorted: readonly number[]): string =>
      `${sorted.length} GETs, p50 ${quantile(sorted, 0.5)} ms, p99 ${quantile(sorted, 0.99)} ms`;
    figure(`${watches - had} of ${watches} watches moved in ${tookMs} ms, ${closed} ended`);
    figure(`the other apiserver: ${shown(before)} before the kill, ${shown(during)} during the moves`);
    assert.equal(counts, { 200: watches });
    assert.is(closed, 0);
    assert.is(asking.heard.filter(({ heard }) => !isServed(heard)).length, 0);
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
