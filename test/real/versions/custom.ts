/**
 * Watches of a custom resource that has two versions and a conversion webhook, while its apiservers, of different
 * versions of Kubernetes themselves, fail in turn, and while its storage version changes there and back.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "../load/client.ts";
import { rollOver } from "../load/troubles.ts";
import { type Event, type WatchEnd, Watching } from "../load/watching.ts";
import { ask, order } from "../rig/ask.ts";
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
import { kindsOf, type Mix, nameOf } from "./mixes.ts";

const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const crdVersionsAll: readonly CrdVersion[] = ["v1", "v2"];
const merge = "application/merge-patch+json";
const count = 10;
const perSecond = 10;
/** After an edit of the CRD each apiserver begins the cache of its objects anew, a second later or more. */
const anewMs = 10_000;

export type Converted = {
  readonly name: string;
  readonly watches: number;
  readonly events: number;
  /** Of watches, after an edit of the CRD: as directly at an apiserver. */
  readonly ends: number;
  readonly reasons: readonly string[];
  readonly converted: number;
  readonly wrong: readonly string[];
};

function pathOf(version: CrdVersion): string {
  return `/apis/${group}/${version}/namespaces/default/things`;
}

type Held = { readonly version: CrdVersion; readonly watch: Watching; readonly from: number };

class Scene {
  readonly cluster: Cluster;
  readonly #proxy: Proxy;
  readonly #webhook: Webhook;
  readonly #clients: Client[] = [];
  readonly #held: Held[] = [];
  readonly #changes: Change[] = [];
  readonly #edits: number[] = [];
  readonly wrong: string[] = [];
  readonly #began = Date.now();
  #writer: Client;

  constructor(cluster: Cluster, proxy: Proxy, webhook: Webhook) {
    this.cluster = cluster;
    this.#proxy = proxy;
    this.#webhook = webhook;
    this.#writer = new Client(cluster.admin);
  }

  async begin(): Promise<() => void> {
    const body = crdWith(this.#webhook, "v1");
    await order(this.cluster.admin, { method: "POST", path: crds, body });
    for (const { url } of this.cluster.apiservers)
      for (const version of crdVersionsAll) await this.#served(url, version);
    for (let at = 0; at < count; at += 1) await this.#create(at);
    const stop = await follow(this.cluster.etcdUrl, `/registry/${group}/things/`, (change) =>
      this.#changes.push(change),
    );
    for (const version of [...crdVersionsAll, ...crdVersionsAll]) await this.#hold(version);
    return stop;
  }

  async #served(url: string, version: CrdVersion): Promise<void> {
    const server = { ...this.cluster.admin, url };
    const deadline = Date.now() + 30_000;
    while ((await ask(server, { path: pathOf(version) })).status !== 200) {
      if (Date.now() > deadline) throw new Error(`${pathOf(version)} is not served at ${url}`);
      await sleep(200);
    }
  }

  async #create(at: number): Promise<void> {
    const version: CrdVersion = at % 2 === 0 ? "v1" : "v2";
    const metadata = { name: `thing-${at}` };
    const body = { apiVersion: `${group}/${version}`, kind: "Thing", metadata, spec: specOf(version, at) };
    await order(this.cluster.admin, { method: "POST", path: pathOf(version), body });
  }

  async #hold(version: CrdVersion): Promise<void> {
    const client = new Client({ ...this.cluster.admin, url: this.#proxy.url });
    this.#clients.push(client);
    const { body } = await client.ask({ path: `${pathOf(version)}?limit=1` });
    // The items come first, since the keys are sorted.
    const { metadata } = JSON.parse(body.toString()) as {
      readonly metadata: { readonly resourceVersion: string };
    };
    const from = Number(metadata.resourceVersion);
    const see = (object: unknown): void => {
      if (!isOf(object as Thing, version)) this.wrong.push(`as ${version}: ${JSON.stringify(object)}`);
    };
    this.#held.push({ version, from, watch: new Watching(client, pathOf(version), from, see) });
  }

  /** Changes one object after the other, in both versions, at an apiserver that nothing is done to for now. */
  write(): () => void {
    let written = 0;
    const timer = setInterval(() => {
      written += 1;
      const version: CrdVersion = written % 2 === 0 ? "v1" : "v2";
      void this.#writer.ask({
        method: "PATCH",
        path: `${pathOf(version)}/thing-${written % count}`,
        headers: { "content-type": merge },
        body: { spec: specOf(version, written) },
      });
    }, 1_000 / perSecond);
    return () => clearInterval(timer);
  }

  /** `hurt` is done to one apiserver, and what is written goes to another. */
  async fault(number: number, hurt: () => Promise<void>): Promise<void> {
    const other = this.cluster.apiserver(1 - number);
    this.#writer.close();
    this.#writer = new Client({ ...this.cluster.admin, url: other.url });
    await hurt();
    await this.cluster.apiserver(number).ready();
    await this.#proxy.settled(2, 30_000);
    await sleep(2_000);
  }

  async store(version: CrdVersion): Promise<void> {
    this.#edits.push(Date.now());
    const body = { spec: { versions: crdVersions(version) } };
    const path = `${crds}/things.${group}`;
    await order(this.cluster.admin, { method: "PATCH", path, body, contentType: merge });
    await sleep(anewMs);
  }

  async end(name: string): Promise<Converted> {
    await sleep(2_000);
    const reasons = saidSince(this.#proxy.logFile, this.#began)
      .filter(({ msg }) => msg === "watches.ended")
      .map(({ reason, count: ended }) => `${String(reason)} ×${String(ended)}`);
    for (const held of this.#held) {
      await held.watch.stop();
      this.wrong.push(...this.#judge(held));
    }
    for (const client of [this.#writer, ...this.#clients]) client.close();
    return {
      name,
      watches: this.#held.length,
      events: this.#held.reduce((sum, { watch }) => sum + watch.events.length, 0),
      ends: this.#held.reduce((sum, { watch }) => sum + watch.ends.length, 0),
      reasons,
      converted: this.#webhook.converted,
      wrong: this.wrong,
    };
  }

  /**
   * Against etcd's record. A watch may end only when the CRD was edited: between two events, or as directly at an apiserver,
   * whose cache begins anew: with 410 for an older version, with 429 ("storage is (re)initializing") before it is filled.
   */
  #judge({ version, watch, from }: Held): string[] {
    const due = this.#changes.map((change) => change.version).filter((at) => at > from);
    const isInGap = (at: number): boolean => watch.gaps.some(({ after, until }) => at > after && at <= until);
    const told = watch.events.map((event: Event) => event.version);
    const missing = due.filter((at) => !told.includes(at) && !isInGap(at)).length;
    const unordered = told.filter((at, index) => index > 0 && at <= (told[index - 1] ?? 0)).length;
    const invented = told.filter((at) => !due.includes(at)).length;
    const isDue = ({ at, how, detail }: WatchEnd): boolean =>
      ["clean ", "error 410", "refused 429"].includes(`${how} ${detail}`) &&
      this.#edits.some((edit) => at >= edit && at <= edit + anewMs);
    const ends = watch.ends.filter((end) => !isDue(end));
    return [
      ...(missing + unordered + invented > 0
        ? [`${version}: ${missing} missing, ${unordered} doubled or out of order, ${invented} invented`]
        : []),
      ...(due.length === 0 ? ["nothing was written"] : []),
      ...ends.map(
        ({ how, detail }) => `${version}: a watch ended without an edit of the CRD: ${how} ${detail}`,
      ),
    ];
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
  const stopWriting = scene.write();
  const [first, second] = [scene.cluster.apiserver(0), scene.cluster.apiserver(1)];
  await scene.fault(0, async () => {
    await first.kill();
    await first.restart();
  });
  await scene.store("v2");
  await scene.fault(1, () => rollOver(second));
  await scene.fault(0, async () => {
    first.freeze();
    await sleep(4_000);
    first.thaw();
  });
  await scene.store("v1");
  await scene.fault(1, async () => {
    second.blackHole();
    await sleep(4_000);
    second.heal();
  });
  stopWriting();
  const converted = await scene.end(name);
  stopFollowing();
  return converted;
}
