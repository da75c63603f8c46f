/**
 * Watches of twenty CRDs during two rolling restarts of both apiservers and a kill of one apiserver at the end. An
 * apiserver initializes the watch cache of a custom resource at the first request for this resource. So, without the
 * proxy's sentinel watches, a restarted apiserver's cache would contain no event from before that request.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Client } from "./load/client.ts";
import { Watching } from "./load/watching.ts";
import { ask, order } from "./rig/ask.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/custom-resources");
const real = testWith(test, clusterNeeds);

const count = 20;
const group = "rig.example.com";
/** Milliseconds from the restart of an apiserver to the next fault. */
const pauseMs = 8_000;

function crd(kind: string): object {
  const plural = `${kind.toLowerCase()}s`;
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { plural, singular: kind.toLowerCase(), kind },
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  };
}

const kinds = Array.from({ length: count }, (_, at) => `Thing${String.fromCharCode(97 + at)}`);
const pathOf = (kind: string): string => `/apis/${group}/v1/${kind.toLowerCase()}s`;

let cluster: Cluster;
let proxy: Proxy;

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2, etcdFlags: ["--watch-progress-notify-interval=5s"] });
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  for (const kind of kinds) await order(cluster.admin, { method: "POST", path, body: crd(kind) });
});

test.after(async () => {
  if (!real.canRun) return;
  await proxy.stop();
  await cluster.stop();
});

async function listed(kind: string, url = proxy.url): Promise<number> {
  const server = { url, caFile: cluster.caFile, token: cluster.token };
  for (let tries = 0; tries < 60; tries += 1) {
    const { status, text } = await ask(server, { path: pathOf(kind) });
    if (status === 200)
      return Number((JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata.resourceVersion);
    await sleep(500);
  }
  throw new Error(`${kind} is not served`);
}

real(
  `watches of ${count} custom resources outlive two rolling restarts and a kill, and none has to list again`,
  async () => {
    const server = { url: proxy.url, caFile: cluster.caFile, token: cluster.token };
    const clients = Array.from({ length: 4 }, () => new Client(server));
    const watches: Watching[] = [];
    // Each apiserver has already served each resource, as in a cluster that has run for a while.
    for (const { url } of cluster.apiservers) for (const kind of kinds) await listed(kind, url);
    for (const [at, kind] of kinds.entries()) {
      const version = await listed(kind);
      for (const client of [clients[at % 4], clients[(at + 1) % 4]])
        if (client !== undefined) watches.push(new Watching(client, pathOf(kind), version));
    }
    // Writes of config maps advance etcd's revision, while the custom resources themselves do not change.
    const timer = setInterval(() => {
      const body = { metadata: { generateName: "busy-" } };
      ask(server, { method: "POST", path: "/api/v1/namespaces/default/configmaps", body }).catch(
        () => undefined,
      );
    }, 100);
    await sleep(4_000);
    for (let round = 0; round < 2; round += 1)
      for (const apiserver of cluster.apiservers) {
        await apiserver.kill();
        await sleep(1_000);
        await apiserver.restart();
        await proxy.settled(2, 30_000);
        await sleep(pauseMs);
      }
    await cluster.apiserver(0).kill();
    await sleep(5_000);
    for (const kind of kinds) {
      const body = { apiVersion: `${group}/v1`, kind, metadata: { name: "last" } };
      await order(cluster.admin, {
        method: "POST",
        path: `/apis/${group}/v1/namespaces/default/${kind.toLowerCase()}s`,
        body,
      });
    }
    await sleep(3_000);
    clearInterval(timer);
    const ends = watches.flatMap((watch) => watch.ends.map(({ how, detail }) => `${how} ${detail}`.trim()));
    const metrics = await (await fetch(`${proxy.metricsUrl}/metrics`)).text();
    const rows = metrics
      .split("\n")
      .filter((row) => /^watchkeeper_watch_(sentinel|moves|ends|bookmark_refreshes)/.test(row));
    figure(
      `${watches.length} watches of ${count} resources, ${ends.length} ends: ${[...new Set(ends)].join(", ")}; ${rows.join("; ")}`,
    );
    assert.equal(
      ends.filter((end) => !end.startsWith("clean")),
      [],
      "none is told that its version is too old",
    );
    assert.is(
      watches.filter(({ events }) => events.some(({ name }) => name === "last")).length,
      watches.length,
    );
    for (const watch of watches) await watch.stop();
    for (const client of clients) client.close();
  },
);

test.run();
