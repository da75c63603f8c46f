/**
 * Runs operations directly at an apiserver, through the proxy, and through the proxy while one apiserver after the
 * other fails.
 */
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

/** Number of apiservers that fail in turn. They are the proxy's backends. */
export const backendCount = 2;
/** Number of operations that run at the same time, not counting those that wait for a fault. */
const workers = 3;
/**
 * Milliseconds from the start of a round's short operations to its fault, so that some of them are in progress when the
 * apiserver fails.
 */
const beforeMs = 500;
/**
 * Milliseconds after the start of the fault at which the long operations continue, in rounds where they continue during
 * the fault.
 */
const earlyMs = 2_000;

/** A client that still runs this many milliseconds after its operation has failed hangs. */
const hangMs = 2_000;

/** Characters of a failure's text that are kept at its beginning, and as many at its end. */
const toldChars = 600;

/** The fault of a round. */
type Failing = {
  /** Name of the fault, such as "api-0 killed". */
  readonly told: string;
  /**
   * One callback for each failed operation, which records its outcome. They are called at the end of the round, because
   * only then do the logs contain all that may explain a failure.
   */
  readonly failed: ((outage: Outage, journal: readonly Said[]) => void)[];
};

export type Plan = {
  readonly modes: readonly Mode[];
  readonly operations: readonly Operation[];
  /** Faults of the mode "through with faults", one after the other. */
  readonly faults: readonly Planned[];
  /** No fault begins later than this many milliseconds after the start. */
  readonly maxMs: number;
  readonly say: (line: string) => void;
};

/**
 * A cluster with three apiservers. The last apiserver is no backend of the proxy and never fails. KWOK, the
 * controllers, the direct clients and the test itself connect to it, so the failure of another apiserver affects only
 * the clients under test.
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

  /** Runs the plan and resolves with all outcomes. */
  static async run(plan: Plan): Promise<readonly Outcome[]> {
    const cluster = await startCluster({
      apiservers: backendCount + 1,
      pods: true,
      // The audit log of an apiserver shows which tunnels the apiserver had.
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

  /**
   * Runs one fault. All long operations are in the middle of their work when the apiserver fails; the short operations
   * run one after the other until the end of the round.
   */
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
    // In two of every four rounds, the long operations continue during the fault. In the other two, they continue after
    // it.
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

  /** Starts all long operations. Resolves when each of them is in the middle of its work or has ended too early. */
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

  /**
   * Runs the short operations again and again until the round is over. Each round begins with a different operation.
   */
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

  /** Runs one operation and records its outcome. Resolves when the operation is over. */
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

  /** Returns what the logs of the apiservers and of the proxy contain about requests in this namespace. */
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

/** Starts kube-controller-manager with only the controllers that Deployments need. */
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

/** Returns the beginning and the end of the error's text. The end is what the client printed last. */
function told(error: unknown): string {
  const text = messageOf(error);
  const cut = "\n[…]\n";
  return text.length > 2 * toldChars ? text.slice(0, toldChars) + cut + text.slice(-toldChars) : text;
}
