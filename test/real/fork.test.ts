/**
 * An apiserver is restarted on a copy of etcd's data that is some seconds old, and then the other apiserver is killed
 * for six seconds. From ten seconds after the restart of this other apiserver on, no event of the copy's history may
 * reach a client, no watch may go back in time, and each client's cache must equal etcd.
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

/** Writes an object directly to one apiserver, ten times a second. Returns a function that stops it. */
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

type Listed = {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly resourceVersion: string };
  }[];
};

/**
 * A cache as client-go maintains it: it lists, watches from the list's version, and lists again after a 410 or a stream
 * reset.
 */
class Cached {
  readonly objects = new Map<string, number>();
  /** Each object version that the cache received, from events and from lists. */
  readonly told: { readonly name: string; readonly version: number }[] = [];
  lists = 0;
  readonly #client: Client;
  readonly #path: string;
  #watch: Watching | undefined;
  #taken = 0;
  #isListing = false;
  #isStopped = false;

  constructor(client: Client, path: string) {
    this.#client = client;
    this.#path = path;
  }

  async list(): Promise<void> {
    this.#isListing = true;
    await this.#watch?.stop();
    while (!this.#isStopped) {
      const { status, body } = await this.#client.ask({ path: this.#path });
      if (status === 200) {
        this.#fill(JSON.parse(body.toString()) as Listed);
        break;
      }
      await sleep(500);
    }
    this.#isListing = false;
  }

  #fill({ metadata, items }: Listed): void {
    this.lists += 1;
    this.objects.clear();
    for (const { metadata: item } of items) this.#tell(item.name, Number(item.resourceVersion));
    this.#taken = 0;
    this.#watch = new Watching(this.#client, this.#path, Number(metadata.resourceVersion));
  }

  #tell(name: string, version: number): void {
    this.objects.set(name, version);
    this.told.push({ name, version });
  }

  /** Processes the events that have arrived, and lists again where client-go would. */
  async look(): Promise<void> {
    if (this.#isListing || this.#watch === undefined) return;
    const { events, ends } = this.#watch;
    for (const { type, name, version } of events.slice(this.#taken)) {
      this.#taken += 1;
      this.#tell(name, version);
      if (type === "DELETED") this.objects.delete(name);
    }
    if (ends.some(({ how }) => how === "error" || how === "reset")) await this.list();
  }

  /** How the cache's watch has ended so far, and whether a list is under way: evidence if the cache is wrong. */
  toString(): string {
    const ends = this.#watch?.ends.map(({ how, detail, at }) => `${how} ${detail} at ${at}`) ?? [];
    return `${this.#path}: ${this.#isListing ? "listing" : "watching"}; ${ends.join(", ")}`;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#watch?.stop();
  }
}

/** Returns how often an object's version was older than the version received before it. */
function backIn({ told }: Cached, name: string): number {
  const ours = told.filter((one) => one.name === name);
  return ours.filter(({ version }, at) => version < (ours[at - 1]?.version ?? 0)).length;
}

real(
  "what an apiserver on a restored copy says reaches no client once the other is back, and every cache is right",
  async () => {
    const [right, wrong] = [cluster.apiserver(1), cluster.apiserver(0)];
    for (const name of ["right", "wrong"])
      await order(cluster.admin, { method: "POST", path: place, body: { metadata: { name } } });
    const copy = await cluster.forkEtcd();
    const stopRight = startWriter(right.url, "right");
    await sleep(3_000);
    const server = { url: proxy.url, caFile: cluster.caFile, token: cluster.token };
    const clients = Array.from({ length: 4 }, () => new Client(server));
    const caches = clients.flatMap((client) =>
      resources.map((resource) => new Cached(client, `/api/v1/${resource}`)),
    );
    await Promise.all(caches.map((cache) => cache.list()));
    const looks = setInterval(() => void Promise.all(caches.map((cache) => cache.look())), 250);
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
    await sleep(rightMs - 2_000);
    stopRight();
    await sleep(2_000);
    stopWrong();
    clearInterval(looks);
    const verdicts = saidSince(proxy.logFile, restartedAt).filter((said) => said["detector"] === "history");
    const truly = { url: right.url, caFile: cluster.caFile, token: cluster.token };
    const { items } = JSON.parse(await order(truly, { path: place })) as Listed;
    const truth = new Map(
      items.map(({ metadata: { name, resourceVersion } }) => [name, Number(resourceVersion)]),
    );
    const told = caches.flatMap((cache) => cache.told);
    const ofCopy = told.filter(({ name, version }) => name === "wrong" && version !== truth.get("wrong"));
    const back = caches.reduce((sum, cache) => sum + backIn(cache, "right"), 0);
    const ofPlace = caches.filter((_, at) => at % resources.length === 0);
    const behind = ofPlace.filter(({ objects }) =>
      ["right", "wrong"].some((name) => objects.get(name) !== truth.get(name)),
    );
    figure(
      `verdicts ${JSON.stringify(verdicts.map(({ backend, from, to, reason }) => ({ backend, from, to, reason })))}`,
    );
    figure(
      `told of the copy ${ofCopy.length}, back in time ${back}, caches that are wrong ${behind.length}, lists ${caches.map(({ lists }) => lists).join(" ")}; the other was back ${returnedAt - backAt} ms after the copy`,
    );
    if (behind.length > 0) {
      figure(behind.map(String).join("\n"));
      figure(
        saidSince(proxy.logFile, backAt)
          .slice(0, 300)
          .map((said) => JSON.stringify(said))
          .join("\n"),
      );
    }
    assert.ok(
      verdicts.some((said) => said["backend"] === wrong.name && said["to"] === "dead"),
      "the copy is noticed",
    );
    assert.not(
      verdicts.some((said) => said["backend"] === right.name),
      "and only the copy",
    );
    assert.equal(ofCopy, [], "nothing of its history is told");
    assert.is(back, 0, "no cache goes back in time");
    const shown = behind.map(({ objects, lists }) => ({ objects: Object.fromEntries(objects), lists }));
    assert.equal(shown, [], `every cache is right: ${JSON.stringify(Object.fromEntries(truth))}`);
    await Promise.all(caches.map((cache) => cache.stop()));
    for (const client of clients) client.close();
  },
);

test.run();
