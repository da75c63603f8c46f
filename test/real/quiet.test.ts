/**
 * Watches of resources that rarely change, through a rolling restart of both apiservers and a kill soon after. The
 * tests use etcd's default of 10 minutes between progress notifications, and kubeadm's 5 s. Informers on every built-in
 * resource must list only once. If apiservers do not request progress from etcd, as those before 1.31, an incident
 * reports that after the first restart. QUIET_SECONDS sets the pause after each restart (default: 6 s).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { within } from "../support/within.ts";
import type { Apiserver } from "./rig/apiserver.ts";
import { ask, order } from "./rig/ask.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { onLeave } from "./rig/leave.ts";
import { clusterNeeds, figure, pathOf, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/quiet");
const real = testWith(test, [...clusterNeeds, "informer"]);
const pauseMs = 1_000 * Number(process.env["QUIET_SECONDS"] ?? 6);

type Told = { readonly kind: string; readonly path?: string; readonly resources?: number };

/** Informers on all built-in resources, and the resources that they listed again. */
class Informers {
  readonly relists: string[] = [];
  resources = 0;
  readonly #process: ChildProcess;
  readonly #synced = Promise.withResolvers<void>();

  constructor(kubeconfig: string) {
    const args = ["--pdeathsig", "KILL", pathOf("informer"), `-kubeconfig=${kubeconfig}`, "-all", "-for=1h"];
    this.#process = spawn("setpriv", args, { stdio: ["ignore", "pipe", "ignore"] });
    onLeave(() => this.#process.kill("SIGKILL"));
    if (this.#process.stdout === null) return;
    createInterface({ input: this.#process.stdout }).on("line", (line) =>
      this.#take(JSON.parse(line) as Told),
    );
  }

  #take({ kind, path = "", resources = 0 }: Told): void {
    if (kind === "relist") this.relists.push(path);
    if (kind !== "synced") return;
    this.resources = resources;
    this.#synced.resolve();
  }

  synced(): Promise<void> {
    return within(60_000, "the informers to list", this.#synced.promise);
  }

  stop(): void {
    this.#process.kill("SIGKILL");
  }
}

const place = "/api/v1/namespaces/default/configmaps";

/** Advances etcd's revision ten times a second, through the proxy. */
function startWriter(cluster: Cluster, proxy: Proxy): () => void {
  const server = { url: proxy.url, caFile: cluster.caFile, token: cluster.token };
  let count = 0;
  const timer = setInterval(() => {
    const body = { metadata: { name: "busy" }, data: { count: String(count++) } };
    // A write that fails because of a fault is ignored.
    ask(server, { method: "PUT", path: `${place}/busy`, body }).catch(() => undefined);
  }, 100);
  return () => clearInterval(timer);
}

async function metric(proxy: Proxy, name: string): Promise<number> {
  const text = await (await fetch(`${proxy.metricsUrl}/metrics`)).text();
  const rows = text.split("\n").filter((row) => row.startsWith(`watchkeeper_${name}`));
  return rows.reduce((sum, row) => sum + Number(row.split(" ").at(-1)), 0);
}

async function restart(apiserver: Apiserver, proxy: Proxy): Promise<void> {
  await apiserver.kill();
  await sleep(1_000);
  await apiserver.restart();
  await proxy.settled(2, 30_000);
}

type Scene = {
  readonly cluster: Cluster;
  readonly proxy: Proxy;
  readonly informers: Informers;
};

/** Runs informers on all resources behind a proxy with two apiservers, while etcd's revision advances. */
async function play(
  options: { readonly etcdFlags?: readonly string[]; readonly flags?: readonly string[] },
  act: (scene: Scene) => Promise<void>,
): Promise<void> {
  const cluster = await startCluster({ apiservers: 2, ...options });
  let informers: Informers | undefined;
  let stopWriting = (): void => undefined;
  try {
    const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
    const proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
    await order(cluster.admin, { method: "POST", path: place, body: { metadata: { name: "busy" } } });
    stopWriting = startWriter(cluster, proxy);
    informers = new Informers(cluster.kubeconfig(proxy.url));
    await informers.synced();
    assert.ok(informers.resources > 40, `${informers.resources} resources are followed`);
    await act({ cluster, proxy, informers });
    await proxy.stop();
  } finally {
    informers?.stop();
    stopWriting();
    await cluster.stop();
  }
}

const unnotified = (proxy: Proxy): Promise<number> =>
  metric(proxy, 'incidents_total{kind="cache-progress-delayed"');

/** Restarts both apiservers, then kills the one that was restarted first. Fails if any informer lists again. */
async function roll({ cluster, proxy, informers }: Scene): Promise<void> {
  for (const apiserver of cluster.apiservers) {
    await restart(apiserver, proxy);
    await sleep(pauseMs);
  }
  await cluster.apiserver(0).kill();
  await sleep(6_000);
  const { relists, resources } = informers;
  figure(
    `${resources} informers, ${await metric(proxy, "watch_moves_total")} moves, ${await metric(proxy, "watch_bookmark_refreshes_total")} renewals, ${await metric(proxy, "watch_progress_requests_total")} progress requests, ${relists.length} relists`,
  );
  assert.equal(relists, [], "nothing is listed again");
  assert.is(await unnotified(proxy), 0, "caches that follow are no incident");
}

/** Flags that give an apiserver the default behaviour of a version before 1.31. */
const old = ["--emulated-version=1.33", "--feature-gates=ConsistentListFromCache=false"];

real("with etcd's default, 10 minutes between notifications, nothing quiet is listed again", () =>
  play({}, roll),
);

real("with kubeadm's 5 s, neither", () => play({ etcdFlags: ["--watch-progress-notify-interval=5s"] }, roll));

real("with 10 minutes and apiservers that do not ask etcd, an incident says so after the first restart", () =>
  play({ flags: old }, async ({ cluster, proxy }) => {
    await restart(cluster.apiserver(0), proxy);
    const from = Date.now();
    while ((await unnotified(proxy)) === 0 && Date.now() - from < 30_000) await sleep(250);
    figure(`told ${Date.now() - from} ms after the restart`);
    assert.is(await unnotified(proxy), 1);
  }),
);

test.run();
