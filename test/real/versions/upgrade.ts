/**
 * A rolling upgrade of three apiservers from one version of Kubernetes to another, under the load of a cluster:
 * client-go watches of every form, informers, GETs, execs, Leases, and reads of APIs that only one of the two versions
 * serves.
 */
import { type Asked, Asking, reasons } from "../load/asking.ts";
import { Client, type Heard } from "../load/client.ts";
import { Elections } from "../load/elections.ts";
import { type CountedPosts, countPosts, posting } from "../load/posts.ts";
import { Rolling } from "../load/rolling.ts";
import { Stage } from "../load/stage.ts";
import { Storm } from "../load/storm.ts";
import { Watching } from "../load/watching.ts";
import type { Apiserver } from "../rig/apiserver.ts";
import type { Version } from "../rig/parts.ts";
import { misses, summary } from "../storm/tell.ts";
import { pathsOf } from "./apis.ts";

export type Upgraded = {
  readonly from: Version;
  readonly to: Version;
  readonly seconds: number;
  /** One sentence for each miss. */
  readonly wrong: readonly string[];
  readonly figures: readonly string[];
  /** Columns of the table: what the clients did and measured. */
  readonly watches: number;
  readonly events: number;
  readonly gets: number;
  /** Number of POSTs through the proxy. */
  readonly posts: number;
  readonly renewals: number;
  readonly longestRenewalMs: number;
  /** Number of reads of APIs that one of the two versions lacks. */
  readonly differing: number;
};

const crowd = { watches: 28, informers: 6, writesPerSecond: 20, getsPerSecond: 20, others: false };
/**
 * Longest accepted delay of an event, in milliseconds. It is generous, because the machine may be shared; the measured
 * delay is printed.
 */
const mostDelayMs = 5_000;
const renewDeadlineMs = 10_000;

/** Clients that create objects through the proxy, ten a second. */
class Writes {
  readonly #clients: readonly Client[];
  readonly #asking: Asking<string>;

  constructor(stage: Stage) {
    this.#clients = Array.from({ length: 3 }, () => new Client(stage.server));
    this.#asking = new Asking(this.#clients, 300, posting(`upgrade-${Date.now()}`));
  }

  async stop(stage: Stage): Promise<CountedPosts> {
    await this.#asking.stop();
    for (const client of this.#clients) client.close();
    return countPosts(stage, this.#asking.heard);
  }
}

function wrongPosts({ failed, doubled, lost }: CountedPosts): string[] {
  return [
    ...(failed.length > 0 ? [`${failed.length} POSTs failed: ${reasons(failed)}`] : []),
    ...(doubled > 0 ? [`${doubled} POSTs created two objects`] : []),
    ...(lost > 0 ? [`${lost} POSTs were answered with 201 and created none`] : []),
  ];
}

/** Clients that read each of `paths` in turn. */
class Reads {
  readonly #clients: readonly Client[];
  readonly #asking: Asking<string>;

  constructor(stage: Stage, paths: readonly string[]) {
    this.#clients = Array.from({ length: 3 }, () => new Client(stage.server));
    this.#asking = new Asking(paths.length === 0 ? [] : this.#clients, 300, (number) => {
      const path = paths[number % paths.length] ?? "";
      return { tag: path, question: { path } };
    });
  }

  async stop(): Promise<readonly Asked<string>[]> {
    await this.#asking.stop();
    for (const client of this.#clients) client.close();
    return this.#asking.heard;
  }
}

function unless200(what: string, asked: readonly Asked<string>[]): string[] {
  const isBad = ({ status, ending }: Heard): boolean => status !== 200 || ending !== "whole";
  return asked
    .filter(({ heard }) => isBad(heard))
    .map(({ tag, heard }) => `${what} ${tag} got ${heard.status} ${heard.why}`.trim());
}

/**
 * Reads and watches of resources that only the new version serves, and reads of resources that only the old version
 * serves.
 */
class Differing {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly #ofAdded: Reads;
  readonly #ofRemoved: Reads;
  readonly #client: Client;
  readonly #watches: readonly Watching[];
  readonly wrong: string[] = [];
  reads = 0;

  constructor(stage: Stage, before: ReadonlySet<string>, after: ReadonlySet<string>, version: number) {
    this.added = [...after].filter((path) => !before.has(path));
    this.removed = [...before].filter((path) => !after.has(path));
    this.#ofAdded = new Reads(stage, this.added);
    this.#ofRemoved = new Reads(stage, this.removed);
    this.#client = new Client(stage.server);
    this.#watches = this.added.map((path) => new Watching(this.#client, path, version));
  }

  /** Called before the last apiserver of the old version is replaced. */
  async stopRemoved(): Promise<void> {
    const asked = await this.#ofRemoved.stop();
    this.reads += asked.length;
    this.wrong.push(...unless200("a read of a removed API", asked));
  }

  async stop(): Promise<void> {
    const asked = await this.#ofAdded.stop();
    this.reads += asked.length;
    this.wrong.push(...unless200("a read of a new API", asked));
    for (const [at, watch] of this.#watches.entries()) {
      for (const { how, detail } of watch.ends)
        this.wrong.push(`a watch of ${this.added[at]} ended: ${how} ${detail}`);
      await watch.stop();
    }
    this.#client.close();
  }
}

export async function upgrade(from: Version, to: Version): Promise<Upgraded> {
  const stage = await Stage.start({ apiservers: Array.from({ length: 3 }, () => ({ version: from })) });
  try {
    return await upgradeOn(stage, from, to);
  } finally {
    await stage.stop();
  }
}

async function upgradeOn(stage: Stage, from: Version, to: Version): Promise<Upgraded> {
  const { apiservers } = stage.cluster;
  const served = (apiserver: Apiserver): Promise<ReadonlySet<string>> =>
    pathsOf({ ...stage.cluster.admin, url: apiserver.url });
  const before = await served(stage.victim);
  const began = Date.now();
  const storm = await Storm.start(stage, { ...crowd, namespaces: 2, seed: 18 });
  const rolling = await Rolling.start(stage);
  const elections = ["first", "second", "third"].map((name) => new Elections(stage.server, name));
  const writes = new Writes(stage);
  let differing: Differing | undefined;
  for (const [at, apiserver] of apiservers.entries()) {
    if (at === apiservers.length - 1) await differing?.stopRemoved();
    storm.spare(apiserver);
    apiserver.kind = { version: to };
    await rolling.replace(apiserver);
    differing ??= new Differing(stage, before, await served(apiserver), await stage.version());
  }
  await rolling.stop();
  await differing?.stop();
  for (const one of elections) await one.stop();
  const posts = await writes.stop(stage);
  const outcome = await storm.stop();
  const longestRenewalMs = Math.max(...elections.map(({ longestMs }) => longestMs));
  const failedRenewals = elections.reduce((sum, { failed }) => sum + failed, 0);
  return {
    from,
    to,
    seconds: Math.round((Date.now() - began) / 1_000),
    wrong: [
      ...rolling.wrong,
      ...(differing?.wrong ?? []),
      ...wrongPosts(posts),
      ...(failedRenewals > 0 ? [`${failedRenewals} renewals of leases failed`] : []),
      ...(longestRenewalMs > renewDeadlineMs ? [`a lease was not renewed for ${longestRenewalMs} ms`] : []),
      ...misses(outcome, mostDelayMs),
      ...(await versionsMissed(stage, to)),
    ],
    figures: [
      ...summary(outcome).split("\n"),
      `only ${to} serves ${differing?.added.join(", ") || "nothing"}; only ${from} serves ${differing?.removed.join(", ") || "nothing"}`,
    ],
    watches: outcome.watches.watches,
    events: outcome.watches.events,
    gets: outcome.gets.sent,
    posts: posts.sent,
    renewals: elections.reduce((sum, { renewed }) => sum + renewed, 0),
    longestRenewalMs,
    differing: differing?.reads ?? 0,
  };
}

/**
 * Returns an error text unless the proxy reports the new version for all apiservers within 15 s. The proxy asks each
 * apiserver for its version every ten seconds.
 */
async function versionsMissed({ proxy, cluster }: Stage, to: Version): Promise<string[]> {
  const deadline = Date.now() + 15_000;
  for (;;) {
    const text = await (await fetch(`${proxy.metricsUrl}/metrics`)).text();
    const told = [...text.matchAll(/^watchkeeper_backend_info\{.*version="v([\d.]+)"\} 1$/gm)];
    const isNew = told.filter(([, version = ""]) => version.startsWith(`${to}.`)).length;
    if (isNew === cluster.apiservers.length && told.length === isNew) return [];
    if (Date.now() > deadline) return [`the metric has ${told.map(([, version]) => version).join(", ")}`];
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
