/**
 * Clients of all kinds that connect through the proxy, writes that bypass it, and etcd's own record. The caller causes
 * faults of the apiservers; `stop` returns what each client received.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Random, seeded } from "../../support/random.ts";
import type { Apiserver } from "../rig/apiserver.ts";
import type { Server } from "../rig/ask.ts";
import { Call } from "../rig/call.ts";
import type { Cluster } from "../rig/cluster.ts";
import { compact } from "../rig/etcd.ts";
import { pathOf, pythonPath } from "../rig/parts.ts";
import { until } from "../rig/until.ts";
import { Asking, isFailure, reasons } from "./asking.ts";
import { Client } from "./client.ts";
import { GoWatches, Informer, type Verdict } from "./go-watches.ts";
import { Gone, type Inquiry } from "./gone.ts";
import { Truth } from "./truth.ts";
import { Writer } from "./writer.ts";

export type Crowd = {
  readonly watches: number;
  readonly informers: number;
  readonly writesPerSecond: number;
  readonly getsPerSecond: number;
  /** True to also run `kubectl get -w` and a Python client. */
  readonly others: boolean;
  readonly namespaces: number;
  readonly seed: number;
};

export type Outcome = {
  readonly watches: Verdict;
  /** Each 410, and each watch that ended because no backend had its version, with whether that was correct. */
  readonly gone: readonly Inquiry[];
  /** Number of watches that the proxy ended, by the reason in its log. */
  readonly reasons: ReadonlyMap<string, number>;
  readonly informers: { readonly relists: number; readonly backwards: number; readonly unequal: number };
  /** Number of events that the client did not receive. -1 if this client did not run. */
  readonly kubectlMissing: number;
  readonly kubectlLives: boolean;
  readonly pythonMissing: number;
  readonly gets: { readonly sent: number; readonly slowestMs: number; readonly failures: string };
  readonly writes: { readonly seen: number; readonly failed: number };
};

/** A cluster and the proxy in front of it: a Stage, or proxies that a test starts and stops itself. */
export type Scene = {
  readonly cluster: Cluster;
  readonly server: Server;
  readonly proxy: { readonly url: string; readonly logFile: string };
};

export class Storm {
  readonly random: Random;
  readonly #stage: Scene;
  readonly #truth: Truth;
  readonly #writer: Writer;
  readonly #watches: GoWatches;
  readonly #gone: Gone;
  readonly #informers: readonly Informer[];
  readonly #gets: Asking<undefined>;
  readonly #clients: readonly Client[];
  readonly #kubectl: Call | undefined;
  readonly #python: Call | undefined;
  readonly #startedAt: number;

  private constructor(
    stage: Scene,
    crowd: Crowd,
    truth: Truth,
    writer: Writer,
    namespaces: readonly string[],
  ) {
    const [first = ""] = namespaces;
    const kubeconfig = stage.cluster.kubeconfig(stage.proxy.url);
    this.random = seeded(crowd.seed);
    this.#stage = stage;
    this.#truth = truth;
    this.#writer = writer;
    this.#startedAt = truth.last;
    this.#gone = new Gone(stage.cluster.apiservers, stage.cluster.token, stage.proxy.logFile);
    this.#watches = new GoWatches(kubeconfig, { namespaces, count: crowd.watches, gone: this.#gone.ask });
    this.#informers = Array.from({ length: crowd.informers }, (_, number) => {
      const namespace = namespaces[number % namespaces.length] ?? first;
      return new Informer(kubeconfig, namespace, {
        content: number % 2 === 0 ? "json" : "protobuf",
        watchList: number % 4 < 2,
      });
    });
    this.#clients = Array.from({ length: 4 }, () => new Client(stage.server));
    this.#gets = new Asking(this.#clients, 4_000 / crowd.getsPerSecond, (number) => ({
      tag: undefined,
      question: { path: `/api/v1/namespaces/${first}/configmaps/thing-${number % 4}-s${number % 4}` },
    }));
    if (!crowd.others) return;
    const columns = "custom-columns=N:.metadata.name,V:.metadata.resourceVersion";
    const args = [
      `--kubeconfig=${kubeconfig}`,
      "get",
      "configmaps",
      "-n",
      first,
      "-w",
      "--no-headers",
      "-o",
      columns,
    ];
    this.#kubectl = new Call(pathOf("kubectl"), args, { timeoutMs: 2 ** 31 - 1 });
    const script = new URL("../python/follow.py", import.meta.url).pathname;
    this.#python = new Call(pythonPath(), [script, kubeconfig, first], { timeoutMs: 2 ** 31 - 1 });
  }

  /** Resolves when all clients are connected and have received their initial state. */
  static async start(stage: Scene, crowd: Crowd): Promise<Storm> {
    const namespaces = Array.from({ length: crowd.namespaces }, (_, number) => `storm-${number}`);
    const truth = await Truth.start(stage.cluster.etcdUrl);
    const writer = new Writer(stage.cluster.admin, namespaces, seeded(crowd.seed + 1));
    await writer.fill();
    const storm = new Storm(stage, crowd, truth, writer, namespaces);
    await storm.#begun(crowd);
    writer.start(crowd.writesPerSecond);
    return storm;
  }

  async #begun({ watches }: Crowd): Promise<void> {
    const what = (): string => `${watches} watches to begin: ${this.#watches.open} have`;
    await until(what, () => this.#watches.open >= watches, 60_000);
    await this.#kubectl?.says(/thing-0/, 30_000);
    await this.#python?.says(/from \d+/, 30_000);
    await sleep(1_000);
  }

  /** From now on, writes go to another apiserver than `victim`, which is about to have a fault. */
  spare(victim: Apiserver): void {
    const other = this.#stage.cluster.apiservers.find((one) => one !== victim);
    if (other !== undefined) this.#writer.use({ ...this.#stage.cluster.admin, url: other.url });
  }

  /** Compacts etcd, so that it keeps only the last `kept` versions. */
  compact(kept: number): Promise<void> {
    return compact(this.#stage.cluster.etcdUrl, Math.max(1, this.#truth.last - kept));
  }

  async stop(): Promise<Outcome> {
    this.#writer.stop();
    await this.#gets.stop();
    const deadline = Date.now() + 15_000;
    while (!this.#watches.hasAll(this.#truth) && Date.now() < deadline) await sleep(100);
    await sleep(500);
    const informers = await this.#stopInformers();
    const [kubectlMissing, kubectlLives] = await this.#stopOther(this.#kubectl);
    const [pythonMissing] = await this.#stopOther(this.#python);
    const watches = await this.#watches.stop(this.#truth);
    const gone = await this.#gone.stop();
    for (const client of this.#clients) client.close();
    this.#truth.stop();
    const heard = this.#gets.heard.map((one) => one.heard);
    return {
      watches,
      gone,
      reasons: this.#gone.reasons,
      informers,
      kubectlMissing,
      kubectlLives,
      pythonMissing,
      gets: {
        sent: heard.length,
        slowestMs: Math.max(...heard.map(({ headMs }) => headMs)),
        // These requests read objects that always exist, so a 404 is a failure too.
        failures: reasons(heard.filter((one) => isFailure(one) || one.status !== 200)),
      },
      writes: {
        seen: this.#truth.of("configmaps/storm-", "", this.#startedAt).length,
        failed: this.#writer.failed,
      },
    };
  }

  /** A streaming list counts as a list. One list for each informer is normal. */
  async #stopInformers(): Promise<Outcome["informers"]> {
    let [relists, backwards, unequal] = [0, 0, 0];
    for (const informer of this.#informers) {
      const summary = await informer.stop();
      const prefix = `configmaps/${informer.namespace}/`;
      const there = await this.#truth.names(prefix);
      relists += summary.lists + summary.streamed - 1;
      backwards += summary.backwards;
      const last = new Map(
        this.#truth.of(prefix).map(({ key, version }) => [key.slice(prefix.length), version]),
      );
      const isEqual =
        Object.keys(summary.objects).toSorted().join() === there.join() &&
        there.every((name) => !last.has(name) || Number(summary.objects[name]) === last.get(name));
      if (!isEqual) unequal++;
    }
    return { relists, backwards, unequal };
  }

  /**
   * Stops the client. Returns how many events of its namespace it did not receive, and whether it still ran until now.
   */
  async #stopOther(call: Call | undefined): Promise<[missing: number, lives: boolean]> {
    if (call === undefined) return [-1, true];
    let lives = true;
    void call.ended.then(() => (lives = false));
    await sleep(10);
    const livedTillNow = lives;
    call.signal("SIGTERM");
    const { out } = await call.ended;
    const seen = new Set(out.split("\n").map((line) => line.trim().split(/\s+/).slice(-2).join(" ")));
    const facts = this.#truth.of("configmaps/storm-0/", "", this.#startedAt);
    const missing = facts.filter(({ key, version }) => !seen.has(`${key.split("/")[2]} ${version}`));
    return [missing.length, livedTillNow];
  }
}
