/** Plays operations directly at an apiserver, through the proxy, and through it while one apiserver in turn fails. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Planned } from "../load/faults.ts";
import type { Outage } from "../load/unknown-writes.ts";
import { Child } from "../rig/child.ts";
import { type Cluster, startCluster } from "../rig/cluster.ts";
import { pathOf } from "../rig/parts.ts";
import { Proxy } from "../rig/proxy.ts";
import { type Said, saidSince } from "../rig/said.ts";
import { serveSite } from "./kubectl-streams.ts";
import { normalised, type Operation, Scene } from "./operation.ts";
import {
  costOf,
  type Failed,
  type Mode,
  messageOf,
  type Outcome,
  tunnelsIn,
  unansweredIn,
} from "./outcome.ts";

const auditPolicy = fileURLToPath(new URL("audit-policy.yaml", import.meta.url));

/** Apiservers that fail in turn: the backends of the proxy. */
export const backendCount = 2;
/** Operations at once, while none waits for a fault. */
const workers = 3;
/** Some operations of the round are under way when the apiserver fails. */
const beforeMs = 500;
/** Into a fault: some operations continue while the apiserver is away. */
const earlyMs = 2_000;

/** How soon a client ends after its operation has failed. */
const hangMs = 2_000;

/** Of a failure's text, at its beginning and at its end. */
const toldChars = 600;

/** The fault of a round. */
type Failing = {
  /** "api-0 killed" */
  readonly told: string;
  /** Each call keeps an outcome that failed: only when the round is over, the logs have all that may explain it. */
  readonly failed: ((outage: Outage, journal: readonly Said[]) => void)[];
};

export type Plan = {
  readonly modes: readonly Mode[];
  readonly operations: readonly Operation[];
  /** Of the third mode, one after the other. */
  readonly faults: readonly Planned[];
  /** No fault begins later than so long after the start. */
  readonly maxMs: number;
  readonly say: (line: string) => void;
};

/**
 * Three apiservers. The last one is no backend of the proxy and never fails: KWOK and the controllers connect to it, and
 * so do the direct clients, and the test itself. So only what the clients do is at stake when an apiserver fails.
 */
export class Play {
  readonly #plan: Plan;
  readonly #cluster: Cluster;
  readonly #proxy: Proxy;
  readonly #outcomes: Outcome[] = [];
  readonly #began = Date.now();
  #scenes = 0;

  private constructor(plan: Plan, cluster: Cluster, proxy: Proxy) {
    this.#plan = plan;
    this.#cluster = cluster;
    this.#proxy = proxy;
  }

  /** Resolves with all outcomes. */
  static async run(plan: Plan): Promise<readonly Outcome[]> {
    const cluster = await startCluster({
      apiservers: backendCount + 1,
      pods: true,
      // What an apiserver logs tells which tunnels it had.
      flags: ["--allow-privileged", `--audit-policy-file=${auditPolicy}`, "--audit-log-path=-"],
      etcdFlags: ["--watch-progress-notify-interval=5s"],
    });
    const site = serveSite(cluster);
    try {
      const backends = cluster.apiservers.slice(0, backendCount).map(({ name, url }) => ({ name, url }));
      const proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
      const controllers = startControllers(cluster);
      try {
        await proxy.settled(backends.length);
        const play = new Play(plan, cluster, proxy);
        for (const mode of plan.modes) await play.#mode(mode);
        return play.#outcomes;
      } finally {
        await proxy.stop();
        await controllers.stop();
      }
    } finally {
      site.close();
      site.closeAllConnections();
      await cluster.stop();
    }
  }

  async #mode(mode: Mode): Promise<void> {
    if (mode !== "through with faults") {
      await inParallel(this.#plan.operations, workers, (operation) => this.#one(operation, mode));
      return;
    }
    for (const [round, planned] of this.#plan.faults.entries()) {
      if (Date.now() - this.#began < this.#plan.maxMs) await this.#round(round, planned);
    }
  }

  /** All long operations are in the middle of their work when the apiserver fails; the others run one after the other. */
  async #round(round: number, { fault, victim: number }: Planned): Promise<void> {
    const victim = this.#cluster.apiserver(number);
    const failing: Failing = { told: `${victim.name} ${fault.name}`, failed: [] };
    const began = Date.now();
    const long = await this.#hold(failing);
    const passed = (): string => `${((Date.now() - began) / 1_000).toFixed(0)} s`;
    const times = [`all held after ${passed()}`];
    const stop = new AbortController();
    const others = this.#loop(round, failing, stop.signal);
    await sleep(beforeMs);
    const since = Date.now();
    const fails = fault.run(victim);
    // In every other pair of rounds they continue while the apiserver is away, else when it is back.
    if (Math.floor(round / 2) % 2 === 0) await sleep(earlyMs);
    else await fails;
    long.release();
    await Promise.all([...long.running, fails]);
    await victim.ready();
    times.push(`the apiserver ready after ${passed()}`);
    await this.#proxy.settled(backendCount, 60_000);
    times.push(`in use after ${passed()}`);
    const outage = { backend: victim.name, since, until: Date.now() };
    stop.abort();
    await others;
    const journal = saidSince(this.#proxy.logFile, since);
    for (const keep of failing.failed) keep(outage, journal);
    this.#plan.say(`round ${round + 1}: ${failing.told}; ${times.join(", ")}; over after ${passed()}`);
  }

  /** Starts all long operations. Resolves when each is in the middle of its work, or has ended too early. */
  async #hold(
    failing: Failing,
  ): Promise<{ readonly running: readonly Promise<void>[]; readonly release: () => void }> {
    const running: Promise<void>[] = [];
    const released = Promise.withResolvers<void>();
    const long = this.#plan.operations.filter(({ isLong }) => isLong);
    await inParallel(long, workers, async (operation) => {
      const reached = Promise.withResolvers<void>();
      const hold = (): Promise<void> => {
        reached.resolve();
        return released.promise;
      };
      const run = this.#one(operation, "through with faults", failing, hold);
      running.push(run);
      await Promise.race([reached.promise, run]);
    });
    return { running, release: released.resolve };
  }

  /** Runs the operations that are not long, until the round is over. Each round begins with other ones. */
  async #loop(round: number, failing: Failing, stop: AbortSignal): Promise<void> {
    const short = this.#plan.operations.filter(({ isLong }) => !isLong);
    let next = round * 7;
    const work = async (): Promise<void> => {
      while (!stop.aborted && short.length > 0) {
        const operation = short[next++ % short.length];
        if (operation !== undefined) await this.#one(operation, "through with faults", failing);
      }
    };
    await Promise.all(Array.from({ length: workers }, work));
  }

  /** Resolves when the operation is over. */
  async #one(
    operation: Operation,
    mode: Mode,
    failing?: Failing,
    hold = async (): Promise<void> => undefined,
  ): Promise<void> {
    const { token, caFile } = this.#cluster;
    const url = mode === "direct" ? this.#cluster.admin.url : this.#proxy.url;
    this.#scenes += 1;
    const scene = new Scene({
      cluster: this.#cluster,
      namespace: `run-${String(this.#scenes).padStart(4, "0")}`,
      server: { url, caFile, token },
      kubeconfigFile: this.#cluster.kubeconfig(url),
      hold,
    });
    try {
      await scene.make();
      await operation.run(scene);
      this.#keep(operation, mode, scene, failing);
    } catch (error) {
      const failed = { error, at: Date.now(), hangs: !(await scene.hasEnded(hangMs)) };
      const keep = (outage?: Outage, journal: readonly Said[] = []): void => {
        const cost =
          outage && costOf({ ...failed, ...this.#requests(scene.namespace, operation, journal) }, outage);
        this.#keep(operation, mode, scene, failing, { failure: told(error), ...(cost && { cost }) });
        const { client, name } = operation;
        const where = failing === undefined ? mode : `${mode} (${failing.told})`;
        this.#plan.say(`${where}: ${client}: ${name}: ${cost ?? "FAILED"}: ${told(error)}`);
      };
      if (failing === undefined) keep();
      else failing.failed.push(keep);
    } finally {
      await scene.stop();
    }
  }

  #keep(
    { client, name }: Operation,
    mode: Mode,
    scene: Scene,
    failing: Failing | undefined,
    more: Pick<Outcome, "failure" | "cost"> = {},
  ): void {
    const shown = normalised(scene.shown.join("\n"));
    this.#outcomes.push({ mode, operation: { client, name }, fault: failing?.told ?? "", shown, ...more });
  }

  /** What the logs of the apiservers and of the proxy tell of the requests in this namespace. */
  #requests(
    namespace: string,
    { tunnel = "pods/" }: Operation,
    journal: readonly Said[],
  ): Pick<Failed, "tunnels" | "unanswered"> {
    return {
      tunnels: this.#cluster.apiservers.flatMap(({ name, logFile }) =>
        tunnelsIn(readFileSync(logFile, "utf8"), name, `/namespaces/${namespace}/${tunnel}`),
      ),
      unanswered: unansweredIn(journal, namespace),
    };
  }
}

/** The controllers that Deployments need, of kube-controller-manager. */
function startControllers(cluster: Cluster): Child {
  return new Child({
    name: "kube-controller-manager",
    command: pathOf("kube-controller-manager"),
    args: [
      `--kubeconfig=${cluster.kubeconfig(cluster.admin.url)}`,
      "--controllers=deployment-controller,replicaset-controller",
      "--leader-elect=false",
      "--secure-port=0",
    ],
    logFile: join(cluster.folder, "kube-controller-manager.log"),
  });
}

async function inParallel<T>(
  items: readonly T[],
  count: number,
  run: (item: T) => Promise<void>,
): Promise<void> {
  const left = [...items];
  const work = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await run(item);
  };
  await Promise.all(Array.from({ length: count }, work));
}

/** The text ends with what a client said last. */
function told(error: unknown): string {
  const text = messageOf(error);
  const cut = "\n[…]\n";
  return text.length > 2 * toldChars ? text.slice(0, toldChars) + cut + text.slice(-toldChars) : text;
}
