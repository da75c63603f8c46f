/**
 * An apiserver comes back on a copy of etcd from some seconds ago, and then the other one is killed for six seconds. Ten
 * seconds after that one is back nothing of the copy's history may reach a client, no watch may go back in time, and each
 * client knows what etcd has.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Client } from "./load/client.ts";
import { Watching } from "./load/watching.ts";
import { ask, order } from "./rig/ask.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { stored } from "./rig/etcd.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";
import { saidSince } from "./rig/said.ts";

const test = suite("real/fork");
const real = testWith(test, clusterNeeds);

const place = "/api/v1/namespaces/default/configmaps";
const resources = ["configmaps", "secrets", "services", "pods", "serviceaccounts", "endpoints"];
const awayMs = 6_000;
const rightMs = 25_000;

let cluster: Cluster;
let proxy: Proxy;

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2, etcdFlags: ["--watch-progress-notify-interval=5s"] });
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
});

test.after(async () => {
  if (!real.canRun) return;
  await proxy.stop();
  await cluster.stop();
});

/** Writes to one apiserver, ten times a second, past the proxy; returns what ends it. */
function startWriter(url: string, name: string): () => void {
  const server = { url, caFile: cluster.caFile, token: cluster.token };
  let count = 0;
  const timer = setInterval(() => {
    const path = `${place}/${name}`;
    const body = { metadata: { name }, data: { count: String(count++), by: name } };
    ask(server, { method: "PUT", path, body }, 1_000).catch(() => undefined);
  }, 100);
  return () => clearInterval(timer);
}

async function versionAt(url: string): Promise<number> {
  const { text } = await ask(
    { url, caFile: cluster.caFile, token: cluster.token },
    { path: `${place}?limit=1` },
  );
  return Number((JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata.resourceVersion);
}

real(
  "what an apiserver on a restored copy says reaches nobody once the other is back, and every cache is right",
  async () => {
    const [right, wrong] = [cluster.apiserver(1), cluster.apiserver(0)];
    for (const name of ["right", "wrong"])
      await order(cluster.admin, { method: "POST", path: place, body: { metadata: { name } } });
    const copy = await cluster.forkEtcd();
    const stopRight = startWriter(right.url, "right");
    await sleep(3_000);
    const server = { url: proxy.url, caFile: cluster.caFile, token: cluster.token };
    const from = await versionAt(right.url);
    const clients = Array.from({ length: 4 }, () => new Client(server));
    const watches = clients.flatMap((client) =>
      resources.map((resource) => new Watching(client, `/api/v1/${resource}`, from)),
    );
    await sleep(4_000);
    const restartedAt = Date.now();
    await wrong.restart([], copy);
    const backAt = Date.now();
    const stopWrong = startWriter(wrong.url, "wrong");
    await sleep(3_000);
    await right.kill();
    await sleep(awayMs);
    await right.restart();
    const returnedAt = Date.now();
    await sleep(rightMs);
    stopRight();
    stopWrong();
    await sleep(2_000);
    const verdicts = saidSince(proxy.logFile, restartedAt).filter((said) => said["detector"] === "history");
    const noticed = verdicts.map((said) => Number(said["time"] ?? 0) - backAt);
    const newest = await versionAt(right.url);
    const told = watches.flatMap(({ events }) => events);
    const ofCopy = told.filter(({ name, at }) => name === "wrong" && at > backAt);
    const last = watches
      .filter((_, at) => at % resources.length === 0)
      .map(({ events }) => events.at(-1)?.version ?? 0);
    const back = watches.flatMap(({ events }) =>
      events.filter(({ version }, at) => version < (events[at - 1]?.version ?? 0)),
    );
    const ends = watches.flatMap((watch) => watch.ends.map(({ how, detail }) => `${how} ${detail}`));
    figure(
      `verdicts ${JSON.stringify(verdicts.map(({ backend, from: was, to, reason }) => ({ backend, was, to, reason })))} after ${noticed.join(", ")} ms, events of the copy ${ofCopy.length}, back in time ${back.length}, ends ${ends.length}: ${[...new Set(ends)].join(", ")}`,
    );
    figure(
      `the other was away until ${returnedAt - backAt} ms after the copy came; etcd is at ${newest}, watches at ${last.join(", ")}`,
    );
    assert.ok(
      verdicts.some((said) => said["backend"] === wrong.name && said["to"] === "dead"),
      "the copy is noticed",
    );
    assert.not(
      verdicts.some((said) => said["backend"] === right.name),
      "and only the copy",
    );
    assert.equal(ofCopy, [], "nothing of its history is told");
    assert.equal(back, [], "no watch goes back in time");
    const values = await stored(cluster.etcdUrl, "/registry/configmaps/default/right");
    assert.is(values.size, 1);
    const lastWrite = Math.max(...told.filter(({ name }) => name === "right").map(({ version }) => version));
    assert.ok(
      last.every((version) => version === lastWrite),
      "every watch knows the last write",
    );
    for (const watch of watches) await watch.stop();
    for (const client of clients) client.close();
  },
);

test.run();
