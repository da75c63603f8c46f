/**
 * Watches of a custom resource that has two versions and a conversion webhook. Meanwhile its apiservers, which run
 * different versions of Kubernetes, fail in turn, and its storage version changes to v2 and back. At each such edit of
 * the CRD, an apiserver ends its watches of the resource, so these ends are compared with those of direct watches.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Asking, isFailure, reasons } from "../load/asking.ts";
import { Client } from "../load/client.ts";
import { rollOver } from "../load/troubles.ts";
import { Watching } from "../load/watching.ts";
import type { Apiserver } from "../rig/apiserver.ts";
import { ask, order, type Server } from "../rig/ask.ts";
import { type Cluster, startCluster } from "../rig/cluster.ts";
import { type Change, follow } from "../rig/etcd.ts";
import { Proxy } from "../rig/proxy.ts";
import { saidSince } from "../rig/said.ts";
import {
  type CrdVersion,
  crdVersions,
  crdWith,
  group,
  isOf,
  specOf,
  type Thing,
  Webhook,
} from "./conversion.ts";
import { idle, type Step, unprovoked, untrue, waysOf, worse } from "./custom-judge.ts";
import { kindsOf, type Mix, nameOf } from "./mixes.ts";

const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const crdVersionsAll: readonly CrdVersion[] = ["v1", "v2"];
const merge = "application/merge-patch+json";
const count = 10;
const perSecond = 10;
/**
 * How long to wait after an edit of the CRD. A second or more after the edit, each apiserver rebuilds its watch cache
 * of the resource.
 */
const anewMs = 10_000;
/**
 * Within this many milliseconds, the apiservers' watches of etcd and this process's own watch of etcd deliver a write.
 */
const reportedMs = 1_000;

export type Converted = {
  readonly name: string;
  readonly seconds: number;
  readonly watches: number;
  readonly events: number;
  readonly faults: number;
  readonly edits: number;
  /**
   * How watches ended after edits of the CRD, such as "clean ×8, refused 429 ×4": those through the proxy (`ends`) and
   * as many direct ones (`directEnds`).
   */
  readonly ends: string;
  readonly directEnds: string;
  readonly reasons: readonly string[];
  readonly converted: number;
  readonly wrong: readonly string[];
};

function pathOf(version: CrdVersion): string {
  return `/apis/${group}/${version}/namespaces/default/things`;
}

/** A watch with a client of its own, and the version at which the watch began. */
type Held = {
  readonly version: CrdVersion;
  readonly from: number;
  readonly watch: Watching;
  readonly client: Client;
};

async function hold(server: Server, version: CrdVersion, see: (object: unknown) => void): Promise<Held> {
  const client = new Client(server);
  const { body } = await client.ask({ path: `${pathOf(version)}?limit=1` });
  const { metadata } = JSON.parse(body.toString()) as {
    readonly metadata: { readonly resourceVersion: string };
  };
  const from = Number(metadata.resourceVersion);
  return { version, from, client, watch: new Watching(client, pathOf(version), from, see) };
}

async function release({ watch, client }: Held): Promise<void> {
  await watch.stop();
  client.close();
}

function addTo(total: Map<string, number>, more: ReadonlyMap<string, number>): void {
  for (const [way, times] of more) total.set(way, (total.get(way) ?? 0) + times);
}

function wordsOf(ways: ReadonlyMap<string, number>): string {
  return [...ways].map(([way, times]) => `${way} ×${times}`).join(", ") || "none";
}

class Scene {
  readonly cluster: Cluster;
  readonly #proxy: Proxy;
  readonly #webhook: Webhook;
  readonly #held: Held[] = [];
  readonly #changes: Change[] = [];
  readonly #steps: Step[] = [];
  readonly #direct = new Map<string, number>();
  readonly #wrong: string[] = [];
  readonly #began = Date.now();
  /**
   * Starts at `count`, so that the first write of each object differs from its initial value. Otherwise, etcd would not
   * change.
   */
  #written = count;

  constructor(cluster: Cluster, proxy: Proxy, webhook: Webhook) {
    this.cluster = cluster;
    this.#proxy = proxy;
    this.#webhook = webhook;
  }

  async begin(): Promise<() => void> {
    const body = crdWith(this.#webhook, "v1");
    await order(this.cluster.admin, { method: "POST", path: crds, body });
    for (const apiserver of this.cluster.apiservers)
      for (const version of crdVersionsAll) await this.#served(this.#at(apiserver), version);
    for (let at = 0; at < count; at += 1) await this.#create(at);
    const stop = await follow(this.cluster.etcdUrl, `/registry/${group}/things/`, (change) =>
      this.#changes.push(change),
    );
    const through = { ...this.cluster.admin, url: this.#proxy.url };
    for (const version of [...crdVersionsAll, ...crdVersionsAll])
      this.#held.push(await hold(through, version, (object) => this.#see(object, version)));
    return stop;
  }

  #at({ url }: Apiserver): Server {
    return { ...this.cluster.admin, url };
  }

  #see(object: unknown, version: CrdVersion): void {
    if (!isOf(object as Thing, version)) this.#wrong.push(`as ${version}: ${JSON.stringify(object)}`);
  }

  async #served(server: Server, version: CrdVersion): Promise<void> {
    const deadline = Date.now() + 30_000;
    while ((await ask(server, { path: pathOf(version) })).status !== 200) {
      if (Date.now() > deadline) throw new Error(`${pathOf(version)} is not served at ${server.url}`);
      await sleep(200);
    }
  }

  async #create(at: number): Promise<void> {
    const version: CrdVersion = at % 2 === 0 ? "v1" : "v2";
    const metadata = { name: `thing-${at}` };
    const body = { apiVersion: `${group}/${version}`, kind: "Thing", metadata, spec: specOf(version, at) };
    await order(this.cluster.admin, { method: "POST", path: pathOf(version), body });
  }

  /**
   * While `run` runs, changes one object after the other, in both versions, through the apiserver `writeTo`, which has
   * no fault.
   */
  async #step(name: string, isEdit: boolean, writeTo: Apiserver, run: () => Promise<void>): Promise<void> {
    const client = new Client(this.#at(writeTo));
    const [from, before] = [Date.now(), this.#changes.length];
    const asking = new Asking([client], 1_000 / perSecond, () => {
      const number = this.#written++;
      const version: CrdVersion = number % 2 === 0 ? "v1" : "v2";
      const path = `${pathOf(version)}/thing-${number % count}`;
      const body = { spec: specOf(version, number) };
      return { tag: path, question: { method: "PATCH", path, headers: { "content-type": merge }, body } };
    });
    await run();
    await asking.stop();
    client.close();
    await sleep(reportedMs);
    const heard = asking.heard.map((one) => one.heard);
    const failed = heard.filter((one) => isFailure(one) || one.status !== 200);
    this.#steps.push({
      name,
      isEdit,
      from,
      until: Date.now(),
      sent: heard.length,
      changed: this.#changes.length - before,
      failures: reasons(failed),
    });
  }

  async fault(name: string, number: number, hurt: (apiserver: Apiserver) => Promise<void>): Promise<void> {
    const [victim, other] = [this.cluster.apiserver(number), this.cluster.apiserver(1 - number)];
    await this.#step(`${victim.name} ${name}`, false, other, async () => {
      await hurt(victim);
      await victim.ready();
      await this.#proxy.settled(2, 30_000);
      await sleep(2_000);
    });
  }

  /**
   * Changes the storage version. As many direct watches as there are watches through the proxy are open during it: one
   * for each version at each apiserver.
   */
  async store(version: CrdVersion): Promise<void> {
    const direct: Held[] = [];
    for (const apiserver of this.cluster.apiservers)
      for (const one of crdVersionsAll) direct.push(await hold(this.#at(apiserver), one, () => {}));
    const body = { spec: { versions: crdVersions(version) } };
    const path = `${crds}/things.${group}`;
    const from = Date.now();
    const [writeTo] = this.cluster.apiservers.slice(-1) as [Apiserver];
    await this.#step(`storage version ${version}`, true, writeTo, async () => {
      await order(this.cluster.admin, { method: "PATCH", path, body, contentType: merge });
      await sleep(anewMs);
    });
    const ends = direct.flatMap(({ watch }) => watch.ends);
    addTo(this.#direct, waysOf(ends, { from, until: Date.now() }));
    for (const one of direct) await release(one);
  }

  async end(name: string): Promise<Converted> {
    await sleep(2_000);
    for (const one of this.#held) await release(one);
    const ends = this.#held.flatMap(({ watch }) => watch.ends);
    const changes = this.#changes.map((change) => change.version);
    const edits = this.#steps.filter(({ isEdit }) => isEdit);
    const through = new Map<string, number>();
    for (const edit of edits) addTo(through, waysOf(ends, edit));
    return {
      name,
      seconds: Math.round((Date.now() - this.#began) / 1_000),
      watches: this.#held.length,
      events: this.#held.reduce((sum, { watch }) => sum + watch.events.length, 0),
      faults: this.#steps.length - edits.length,
      edits: edits.length,
      ends: wordsOf(through),
      directEnds: wordsOf(this.#direct),
      reasons: saidSince(this.#proxy.logFile, this.#began)
        .filter(({ msg }) => msg === "watches.ended")
        .map(({ reason, count: ended }) => `${String(reason)} ×${String(ended)}`),
      converted: this.#webhook.converted,
      wrong: [
        ...this.#wrong,
        ...idle(this.#steps, perSecond),
        ...this.#held.flatMap(({ version, watch, from }) =>
          untrue(watch, from, changes).map((what) => `${version}: ${what}`),
        ),
        ...unprovoked(ends, this.#steps),
        ...worse({ through, direct: this.#direct }),
      ],
    };
  }
}

export async function playConversion(mix: Mix): Promise<Converted> {
  const cluster = await startCluster({ apiservers: kindsOf(mix) });
  try {
    const webhook = await Webhook.start(cluster);
    const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
    const proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
    try {
      await proxy.settled(2);
      return await playOn(new Scene(cluster, proxy, webhook), nameOf(mix));
    } finally {
      await proxy.stop();
      webhook.stop();
    }
  } finally {
    await cluster.stop();
  }
}

async function playOn(scene: Scene, name: string): Promise<Converted> {
  const stopFollowing = await scene.begin();
  await scene.fault("killed", 0, async (apiserver) => {
    await apiserver.kill();
    await apiserver.restart();
  });
  await scene.store("v2");
  await scene.fault("rolled over", 1, rollOver);
  await scene.store("v1");
  await scene.fault("frozen", 0, async (apiserver) => {
    apiserver.freeze();
    await sleep(4_000);
    apiserver.thaw();
  });
  await scene.store("v2");
  await scene.fault("dropped", 1, async (apiserver) => {
    apiserver.blackHole();
    await sleep(4_000);
    apiserver.heal();
  });
  await scene.store("v1");
  const converted = await scene.end(name);
  stopFollowing();
  return converted;
}
