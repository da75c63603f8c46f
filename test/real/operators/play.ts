/**
 * One run: a cluster, three replicas of the control plane and the operators behind one proxy, while apiservers fail in
 * turn.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { seeded } from "../../support/random.ts";
import { Faults } from "../load/faults.ts";
import type { Server } from "../rig/ask.ts";
import { type Cluster, startCluster } from "../rig/cluster.ts";
import { ControlPlane, controlPlaneUsers } from "../rig/control-plane.ts";
import { runFolder } from "../rig/folder.ts";
import type { Kept } from "../rig/kept.ts";
import { saidSince } from "../rig/said.ts";
import { until } from "../rig/until.ts";
import { type Asked, auditFlags, judge, readAudit, unwatching } from "./audit.ts";
import { Leaders } from "./leaders.ts";
import { explain, explainByTime, readLines, type Told } from "./lines.ts";
import { type Operator, startOperator, usersOf } from "./operators.ts";
import { type Kind, startThrough, type Through } from "./through.ts";
import { Workload } from "./workload.ts";

export type Plan = {
  readonly minutes: number;
  readonly everyMs: number;
  /** Seed for the order of the faults. Undefined: the order of the list. */
  readonly seed?: number;
  readonly operators: readonly Operator[];
};

export type Played = {
  readonly kind: Kind;
  readonly minutes: number;
  readonly faults: readonly string[];
  readonly processes: number;
  readonly leaderChanges: readonly string[];
  readonly relists: readonly Asked[];
  readonly closed: readonly Asked[];
  /** Closed watches of operators that watch over WebSockets. */
  readonly closedWebSockets: readonly Asked[];
  /**
   * Failed requests, without writes of unknown outcome: those that operators report, and those of any client in the
   * proxy's log.
   */
  readonly errors: readonly Told[];
  readonly unknownWrites: readonly Told[];
  /** The name of the process for each restart. */
  readonly restarts: readonly string[];
  readonly reconciles: number;
  /** Milliseconds from the change of a task to its reconciliation, sorted. */
  readonly latencies: readonly number[];
  /** Tasks that no operator had reconciled ten seconds after the last change. */
  readonly unreconciled: readonly string[];
  /** Duration of the longest read that went directly to an apiserver without a fault: what the machine alone costs. */
  readonly slowestDirectMs: number;
  /** Problems of the test rig, because of which the figures prove less. */
  readonly wrong: readonly string[];
  /**
   * Watches that ended too early, according to the proxy's log and to the logs of kube-controller-manager and
   * kube-scheduler.
   */
  readonly ended: readonly string[];
};

const patienceMs = 10_000;

export async function play(kind: Kind, plan: Plan): Promise<Played> {
  const { folder, remove } = runFolder();
  const audit = auditFlags(folder);
  const cluster = await startCluster({
    apiservers: 3,
    serviceAccounts: true,
    flags: ["--allow-privileged", ...audit.flags],
    etcdFlags: ["--watch-progress-notify-interval=5s"], // as kubeadm sets it
    users: { ...controlPlaneUsers, ...usersOf(plan.operators) },
  });
  try {
    const through = await startThrough(kind, cluster);
    try {
      return await new Run(cluster, through, plan, audit.logFile).play(kind);
    } finally {
      await through.stop();
    }
  } finally {
    await cluster.stop();
    remove();
  }
}

class Run {
  readonly #cluster: Cluster;
  readonly #through: Through;
  readonly #plan: Plan;
  readonly #auditFile: string;
  readonly #workload: Workload;
  readonly #leaders: Leaders;
  #operators: readonly Kept[] = [];
  #faults: Faults | undefined;

  constructor(cluster: Cluster, through: Through, plan: Plan, auditFile: string) {
    this.#cluster = cluster;
    this.#through = through;
    this.#plan = plan;
    this.#auditFile = auditFile;
    const names = plan.operators.map(({ name }) => name);
    this.#workload = new Workload(() => this.#ready(), names);
    this.#leaders = new Leaders(() => this.#ready());
  }

  /** Returns an apiserver that has no fault at the moment. */
  #ready(): Server {
    const { apiservers, caFile, token } = this.#cluster;
    const one = apiservers.find((apiserver) => apiserver !== this.#faults?.victim);
    return { url: one?.url ?? "", caFile, token };
  }

  async play(kind: Kind): Promise<Played> {
    const count = this.#cluster.apiservers.length;
    await this.#through.settled(count);
    const { url } = this.#through;
    const plane = await ControlPlane.start(this.#cluster, url, { replicas: 3, hasTokens: true });
    try {
      await this.#workload.fill(this.#cluster.etcdUrl);
      this.#operators = this.#plan.operators.flatMap((one) => startOperator(one, this.#cluster, url));
      await this.#settled();
      return await this.#hurt(kind, plane);
    } finally {
      this.#workload.stop();
      this.#workload.reconciled.stop();
      this.#leaders.stop();
      await Promise.all(this.#operators.map((one) => one.stop()));
      await plane.stop();
    }
  }

  /** Resolves when each operator has reconciled its tasks once, and each client has opened a watch. */
  async #settled(): Promise<void> {
    const { reconciled } = this.#workload;
    const what = (): string => `operators to reconcile ${reconciled.waiting.join(", ")}`;
    await until(what, () => reconciled.waiting.length === 0, 180_000);
    // By then, replicas that are not leader have opened their other watches too.
    await sleep(patienceMs);
    const { hasWebSockets, plain } = this.#users();
    let missing: readonly string[] = [];
    const areWatching = async (): Promise<boolean> => {
      await sleep(1_000);
      missing = unwatching(readAudit(this.#auditFile, Date.now()), [...plain, ...hasWebSockets]);
      return missing.length === 0;
    };
    await until(() => `watches in the audit log of ${missing.join(", ")}`, areWatching, 120_000);
  }

  async #hurt(kind: Kind, plane: ControlPlane): Promise<Played> {
    const since = Date.now();
    const { hasWebSockets } = this.#users();
    const before = {
      leaders: this.#leaders.changes.length,
      restarts: this.#restarts(plane).length,
      warnings: new Set(plane.reflectors().warnings),
    };
    const { everyMs, seed, minutes, operators } = this.#plan;
    this.#workload.start();
    const random = seed === undefined ? undefined : seeded(seed);
    this.#faults = new Faults(this.#cluster, this.#through, everyMs, random);
    await sleep(minutes * 60_000);
    await this.#faults.stop();
    this.#workload.stop();
    await sleep(patienceMs);
    this.#leaders.stop();
    const ended = Date.now();
    const { relists, closed } = judge(readAudit(this.#auditFile, since), since, ended);
    const lines = this.#operators.flatMap(({ name, logFile }) =>
      readLines(logFile, since, ended).map((line) => ({ ...line, who: name })),
    );
    const failures = lines.filter(({ event }) => event === "error");
    const journal = saidSince(this.#through.logFile, since).filter(({ ts }) => ts < ended);
    const { outages } = this.#faults;
    const { errors, unknownWrites } =
      kind === "watchkeeper" ? explain(failures, journal, outages) : explainByTime(failures, outages);
    const lost = lines.filter(({ event }) => event === "lost");
    const { reconciled, failed, written } = this.#workload;
    const latencies = reconciled.latencies.filter(({ at }) => at >= since).map(({ ms }) => ms);
    return {
      kind,
      minutes: (ended - since) / 60_000,
      faults: this.#faults.played,
      processes: this.#operators.length,
      leaderChanges: [
        ...this.#leaders.changes.slice(before.leaders),
        ...lost.map(({ at, who, text }) => `${new Date(at).toISOString()} ${who} lost its Lease: ${text}`),
      ],
      relists,
      closed: closed.filter((one) => !hasWebSockets.includes(one.user)),
      closedWebSockets: closed.filter((one) => hasWebSockets.includes(one.user)),
      errors,
      unknownWrites,
      restarts: this.#restarts(plane).slice(before.restarts),
      reconciles: latencies.length,
      latencies: latencies.toSorted((one, other) => one - other),
      unreconciled: reconciled.waiting,
      slowestDirectMs: this.#leaders.slowestMs,
      wrong: [
        ...this.#faults.unsettled,
        ...(this.#through.isRunning ? [] : ["the proxy has ended"]),
        ...(failed * 50 > written ? [`${failed} of ${failed + written} writes of the workload failed`] : []),
        ...this.#leaders.gaps,
        ...this.#unled(operators),
      ],
      ended: [
        ...journal.filter(({ msg }) => msg === "watches.ended").map((entry) => JSON.stringify(entry)),
        ...plane.reflectors().warnings.filter((line) => !before.warnings.has(line)),
      ],
    };
  }

  /** Returns the users of all clients that watch. */
  #users(): { readonly hasWebSockets: readonly string[]; readonly plain: readonly string[] } {
    const own = (isWanted: boolean): readonly string[] =>
      Object.keys(
        usersOf(this.#plan.operators.filter(({ hasWebSockets = false }) => hasWebSockets === isWanted)),
      );
    return { hasWebSockets: own(true), plain: [...Object.keys(controlPlaneUsers), ...own(false)] };
  }

  /** Returns the Leases, of operators with replicas and of the control plane, that were never held. */
  #unled(operators: readonly Operator[]): readonly string[] {
    const names = operators.filter(({ replicas }) => replicas > 1).map(({ name }) => `${name}/${name}`);
    return [...names, "kube-system/kube-controller-manager", "kube-system/kube-scheduler"]
      .filter((name) => !this.#leaders.holders.has(name))
      .map((name) => `${name} was never held`);
  }

  #restarts(plane: ControlPlane): readonly string[] {
    const own = this.#operators.flatMap(({ name, restarts }) => Array.from({ length: restarts }, () => name));
    return [...plane.ended, ...own];
  }
}
