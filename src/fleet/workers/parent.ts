/**
 * The parent's side of the messages (messages.ts). Applies the workers' evidence about backends to the parent's
 * clusters, and writes the workers' journal entries to the parent's journal. Sends the workers the verdicts (the
 * parent's decisions about the backends' health states), the discovered backends, the operators' limits, and each
 * worker's share of all limits.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import type { Config } from "../../ops/config/config.ts";
import type { Cluster } from "../../proxy/cluster/cluster.ts";
import type { Clusters } from "../../proxy/cluster/clusters.ts";
import type { ParentHooks } from "../../proxy/cluster/shared-verdict.ts";
import type { DrainTimes } from "../../proxy/cluster/shutdown-drain.ts";
import { LimitShares } from "./limit-shares.ts";
import {
  machineClockOffset,
  type Question,
  shiftedEvidence,
  shiftedFacts,
  type ToParent,
  type ToWorker,
} from "./messages.ts";
import type { Worker } from "./worker.ts";
import { WorkerPool } from "./worker-pool.ts";
import type { WorkerProcess } from "./worker-process.ts";

export type ParentParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly config: Config;
  readonly startProcess: () => WorkerProcess;
};

export class Parent {
  readonly #parts: ParentParts;
  readonly #pool: WorkerPool;
  readonly #offsetMs: number;
  readonly #shares = new LimitShares();
  #config: Config;
  #clusters: Clusters | undefined;
  #onEnded = (_snapshot: unknown): void => {};
  /** Number of journal entries that workers have dropped, because they had too many to send. */
  droppedEntries = 0;

  constructor(parts: ParentParts) {
    const { clock, journal, startProcess } = parts;
    this.#parts = parts;
    this.#config = parts.config;
    this.#offsetMs = machineClockOffset(clock.now());
    this.#pool = new WorkerPool({
      clock,
      journal,
      size: parts.config.workers,
      startProcess,
      greeting: () => this.#greeting(),
      received: (worker, message) => this.#received(worker, message),
      looked: () => this.#divideLimits(),
      ended: (worker) => this.#ended(worker),
    });
  }

  /**
   * Called by the parent's clusters when the verdict about a backend's health or the list of discovered backends has
   * changed. The clusters are created with these hooks, and passed to `attach` afterwards.
   */
  readonly hooks: ParentHooks = {
    onFacts: (backend, facts, evidence) =>
      this.#pool.send({
        kind: "verdict",
        backend,
        version: this.#clusters?.ownerOf(backend)?.versions.of(backend) ?? "",
        facts: shiftedFacts(facts, this.#offsetMs),
        evidence: shiftedEvidence(evidence, this.#offsetMs),
      }),
    onProofs: (cluster, proofs) => this.#pool.send({ kind: "proofs", cluster, proofs }),
    onBackends: (cluster, backends) => {
      this.#pool.send({ kind: "found", cluster, backends });
      // A worker ignores verdicts about backends that it does not know yet, and may have ignored some until now.
      // Therefore all verdicts are sent again.
      for (const message of this.#verdicts()) this.#pool.send(message);
    },
  };

  attach(clusters: Clusters): void {
    this.#clusters = clusters;
    const { operatorLimits } = clusters;
    operatorLimits.subscribe(() => this.#pool.send({ kind: "limits", state: operatorLimits.state }));
  }

  /**
   * Sends each worker its share of each limit, and sets the counts of the parent's own limits to the sums over all
   * workers, because the metrics and the API read the parent's counts.
   */
  #divideLimits(): void {
    if (this.#clusters === undefined) return;
    const { limits, operatorLimits } = this.#clusters;
    const serving = this.#pool.all.filter(({ state }) => state === "serving");
    const counts = new Map(serving.map(({ number, load }) => [number, load.limits] as const));
    const keys = new Set(limits.keys());
    this.#shares.keepOnly(keys);
    for (const [key, limit] of limits) {
      const all = this.#pool.all.map(({ load }) => load.limits);
      Object.assign(limit, this.#shares.totalOf(key, all));
    }
    if (limits.size === 0) return;
    const { count: replicas } = operatorLimits.replicas;
    const shares = this.#shares.next(counts, keys);
    for (const worker of serving)
      worker.send({ kind: "shares", shares: shares.get(worker.number) ?? {}, replicas });
  }

  get workers(): readonly Worker[] {
    return this.#pool.all;
  }

  /** The latest answer of each worker to the question "snapshot"; undefined: the worker has not answered yet. */
  get snapshots(): readonly unknown[] {
    return this.#pool.all.map(({ snapshot }) => snapshot);
  }

  /**
   * Asks all workers that serve or drain. Resolves with their answers. A worker that ends before it answers is omitted.
   */
  async ask(question: Question): Promise<readonly unknown[]> {
    const serving = this.#pool.all.filter(({ state }) => state === "serving" || state === "draining");
    const answers = await Promise.all(serving.map((worker) => worker.ask(question)));
    return answers.filter((answer) => answer !== undefined && !(answer instanceof Failure));
  }

  /** Calls `run` with the last snapshot of each worker that ends. */
  onEnded(run: (snapshot: unknown) => void): void {
    this.#onEnded = run;
  }

  /** Starts all workers. Resolves as soon as one serves, or with a Failure when all of them have ended. */
  start(): Promise<Failure | undefined> {
    return this.#pool.start();
  }

  readonly pass = (listener: string, socket: Socket, leave: () => void): void =>
    this.#pool.pass(listener, socket, leave);

  /** Why none of the serving workers takes new clients; "": at least one does, or no worker serves. */
  get complaint(): string {
    const { serving } = this;
    return serving.every(({ load }) => load.complaint !== "") ? (serving[0]?.load.complaint ?? "") : "";
  }

  get serving(): readonly Worker[] {
    return this.#pool.all.filter(({ state }) => state === "serving");
  }

  /** Number of HTTP/2 and HTTP/1.1 sessions of all workers. */
  get sessions(): { readonly h2: number; readonly h1: number } {
    const loads = this.#pool.all.map(({ load }) => load);
    return {
      h2: loads.reduce((sum, { h2 }) => sum + h2, 0),
      h1: loads.reduce((sum, { h1 }) => sum + h1, 0),
    };
  }

  /** Number of requests and tunnels in progress at all workers. */
  get requests(): number {
    return this.#pool.all.reduce((sum, { load }) => sum + load.requests, 0);
  }

  /** Number of workers whose process runs. */
  get alive(): number {
    return this.#pool.alive;
  }

  /** Applies a configuration that this process has applied. Returns a Failure if a worker keeps its present one. */
  async configure(config: Config): Promise<Failure | undefined> {
    this.#config = config;
    const setup = this.#setup();
    const outcomes = await Promise.all(
      this.#pool.all.map(async (worker) => ({ worker, problem: await worker.configure(setup) })),
    );
    const kept = outcomes.find(({ problem }) => problem !== "");
    const what = `worker ${kept?.worker.number} keeps its configuration: ${kept?.problem}`;
    return kept && new Failure("bad-file", "proxy", what);
  }

  /** Makes new sockets wait until the returned function is called, because workers do not know a new listener yet. */
  hold(): () => void {
    return this.#pool.hold();
  }

  drain(times: DrainTimes): Promise<void> {
    return this.#pool.drain(times);
  }

  kill(): void {
    this.#pool.kill();
  }

  #setup(): { readonly config: Config; readonly labels: Readonly<Record<string, string>> } {
    return { config: this.#config, labels: this.#clusters?.labels ?? {} };
  }

  #greeting(): readonly ToWorker[] {
    const found = (this.#clusters?.all ?? []).flatMap(({ label, backends, credentials }): ToWorker[] => [
      { kind: "found", cluster: label, backends: backends.found },
      { kind: "proofs", cluster: label, proofs: credentials.told },
    ]);
    const state = this.#clusters?.operatorLimits.state ?? "";
    return [{ kind: "start", ...this.#setup() }, ...found, ...this.#verdicts(), { kind: "limits", state }];
  }

  /**
   * Returns the verdicts in force, as messages to a worker. The evidence that led to a verdict may be hours old. In its
   * place, the message carries the evidence "alone", on which a worker does not act.
   */
  #verdicts(): readonly ToWorker[] {
    return (this.#clusters?.all ?? []).flatMap(({ shared, versions }) =>
      Array.from(
        shared?.latest ?? [],
        ([backend, facts]): ToWorker => ({
          kind: "verdict",
          backend,
          version: versions.of(backend),
          facts: shiftedFacts(facts, this.#offsetMs),
          evidence: { kind: "alone" },
        }),
      ),
    );
  }

  #received({ number }: Worker, message: ToParent): void {
    if (message.kind === "entries") {
      this.droppedEntries += message.dropped;
      for (const entry of message.entries) this.#parts.journal.write(entry);
    } else if (message.kind === "ledger") {
      const cluster = this.#clusters?.all.find(({ label }) => label === message.cluster);
      cluster?.path.ledgerTap.learn(message.fact);
    } else if ("backend" in message) {
      const cluster = this.#clusters?.ownerOf(message.backend);
      if (cluster !== undefined) this.#learn(number, cluster, message);
    }
  }

  #learn(number: number, cluster: Cluster, message: Extract<ToParent, { backend: string }>): void {
    const { backend } = message;
    if (message.kind === "probe") cluster.path.probe(backend, message.symptom);
    else if (message.kind === "unconnected") cluster.unconnected(number, backend);
    else cluster.learnFrom(number, backend, shiftedEvidence(message.evidence, -this.#offsetMs));
  }

  #ended({ number, snapshot, load }: Worker): void {
    this.#shares.ended(number, load.limits);
    if (snapshot !== undefined) this.#onEnded(snapshot);
    for (const cluster of this.#clusters?.all ?? []) cluster.ended(number);
  }
}
