/** Runs in a worker: answers the questions that the parent asks for its admin page, its API and its metrics. */
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import { backendPartsOf } from "../../ops/admin/api/backend-listing.ts";
import { clientListing } from "../../ops/admin/api/client-listing.ts";
import { ProcessMonitor } from "../../ops/admin/api/stats.ts";
import { watchDetail, watchListing } from "../../ops/admin/api/watch-listing.ts";
import { record } from "../../ops/admin/history/recorded.ts";
import { type Page, pagesOf } from "../../ops/admin/http/listing.ts";
import { type Times, timesOf } from "../../ops/admin/http/times.ts";
import { backendStatusesOf } from "../../ops/admin/metrics/cluster-view.ts";
import type { LiveCluster, Process } from "../../ops/admin/metrics/metric.ts";
import { Metrics } from "../../ops/admin/metrics/registry.ts";
import type { DataPath } from "../../proxy/cluster/data-path.ts";
import type { Operations } from "../../proxy/cluster/operations.ts";
import type { OperatorLimits } from "../../proxy/limits/operator-limits.ts";
import type { Exchange } from "../../proxy/request/exchange.ts";
import type { Question } from "../workers/messages.ts";

type AnsweringCluster = LiveCluster & {
  readonly path: Pick<DataPath, "ledgerTap" | "exchanges" | "caches" | "backends" | "limits">;
};

export type WorkerAnswersParts = Omit<Process, "incidents" | "clusters" | "operatorLimits" | "replicas"> & {
  readonly journal: Journal;
  readonly clusters: () => readonly AnsweringCluster[];
  readonly operatorLimits: Pick<OperatorLimits, "all">;
  readonly operations: Pick<Operations, "moveHere">;
};

export class WorkerAnswers {
  readonly #parts: WorkerAnswersParts;
  readonly #clock: Clock;
  readonly #times: Times;
  readonly #metrics: Metrics;
  readonly #monitor: ProcessMonitor;
  readonly #pages: ReadonlyMap<string, Page>;

  constructor(parts: WorkerAnswersParts) {
    const { clock, journal, clusters } = parts;
    this.#parts = parts;
    this.#clock = clock;
    this.#times = timesOf(clock);
    this.#monitor = new ProcessMonitor(this.#times);
    const incidents = { counts: [], active: [] };
    this.#metrics = new Metrics(journal, { ...parts, incidents, replicas: { rows: [], count: 1 } });
    const live = (): readonly Exchange[] => this.#live;
    const ledgers = () => clusters().map(({ label, path: { ledgerTap } }) => ({ cluster: label, ledgerTap }));
    this.#pages = new Map([
      ["watches", pagesOf(watchListing(live, this.#times), clock)],
      ["clients", pagesOf(clientListing(ledgers, this.#times), clock)],
    ]);
  }

  get #live(): readonly Exchange[] {
    return this.#parts.clusters().flatMap(({ path }) => path.exchanges.live);
  }

  /**
   * Returns the answer, or a promise of it: a value that JSON can represent, or undefined if the worker has nothing to
   * answer.
   */
  answer(question: Question): unknown {
    if (question.of === "page") return this.#pages.get(question.list)?.readFirst(question.query);
    if (question.of === "watch")
      return watchDetail(this.#live, question.id, { clock: this.#clock, times: this.#times });
    if (question.of === "move") return this.#move(question.id);
    return this.#answers[question.of]();
  }

  readonly #answers = {
    snapshot: () => ({ metrics: this.#metrics.snapshot(), monitor: this.#monitor.read() }),
    process: () => this.#metrics.processMetrics(),
    recorded: () => this.#recorded(),
    backends: () => this.#backends(),
  };

  #move(id: string): unknown {
    const outcome = this.#parts.operations.moveHere(id);
    return outcome instanceof Failure ? { code: outcome.code, message: outcome.message } : outcome;
  }

  #recorded(): Promise<unknown> {
    const clusters = this.#parts.clusters().map(({ path }) => ({
      exchanges: path.exchanges,
      backends: () => backendStatusesOf({ path }),
    }));
    return new Promise((resolve) => {
      record(clusters, this.#clock, resolve);
    });
  }

  #backends(): Promise<unknown> {
    const { clusters } = this.#parts;
    return backendPartsOf({
      clock: this.#clock,
      live: () => this.#live,
      backends: () => clusters().flatMap(backendStatusesOf),
      stalledWith: (backend) =>
        clusters().flatMap(({ path }) => path.caches.stalledAt(backend, this.#clock.now())),
    });
  }

  stop(): void {
    this.#monitor.stop();
  }
}
