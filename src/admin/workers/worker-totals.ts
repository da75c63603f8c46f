/**
 * Collects the answers of this process's workers for the admin page, the API and the metrics. Ignores answers that do
 * not have the expected form.
 */
import { isRecord } from "../../base/json.ts";
import type { Question } from "../../workers/messages.ts";
import { type BackendPart, partsIn } from "../api/backend-parts.ts";
import { type Recorded, recordedFrom } from "../history/recorded.ts";
import { type FirstRows, firstRowsIn, type JsonObject, mergedPage, type Page } from "../http/listing.ts";
import type { WorkerMetrics } from "../metrics/registry.ts";
import { type MetricsSnapshot, snapshotIn } from "../metrics/snapshot.ts";

/** The part of src/workers/parent.ts that this file uses. */
export type Workers = {
  /** The latest answer of each worker to the question "snapshot"; undefined for a worker that has not answered. */
  readonly snapshots: readonly unknown[];
  /** Resolves with the answers of all workers that serve. */
  ask(question: Question): Promise<readonly unknown[]>;
  /** Calls `run` with the last snapshot of each worker that ends. */
  onEnded(run: (snapshot: unknown) => void): void;
};

/** CPU time, memory and event-loop delay of one process, or of several processes together. */
export type ProcessCosts = {
  readonly cpuMs: number;
  readonly rssBytes: number;
  readonly eventLoopDelayMs: number;
};

/** The lists whose rows exist only in the workers. */
const listed: ReadonlySet<string> = new Set(["watches", "clients"]);

export class WorkerTotals implements WorkerMetrics {
  readonly #workers: Workers;
  /**
   * The valid metrics in each worker's answer, with the answer as the key. Several scrapes read the same answer, but it
   * is checked only once.
   */
  readonly #checked = new WeakMap<object, MetricsSnapshot>();

  constructor(workers: Workers) {
    this.#workers = workers;
  }

  readonly snapshots = (): readonly MetricsSnapshot[] =>
    this.#workers.snapshots.map((answer) => this.#metricsIn(answer)).filter((one) => one !== undefined);

  readonly processes = async (): Promise<readonly object[]> =>
    (await this.#workers.ask({ of: "process" })).filter(isMetricsJson);

  /** The sums of CPU time and memory over all workers, and the longest delay of any worker's event loop. */
  get monitored(): ProcessCosts {
    let sum: ProcessCosts = { cpuMs: 0, rssBytes: 0, eventLoopDelayMs: 0 };
    for (const answer of this.#workers.snapshots) {
      const monitor = isRecord(answer) ? answer["monitor"] : undefined;
      sum = {
        cpuMs: sum.cpuMs + numberAt(monitor, "cpuMs"),
        rssBytes: sum.rssBytes + numberAt(monitor, "rssBytes"),
        eventLoopDelayMs: Math.max(sum.eventLoopDelayMs, numberAt(monitor, "eventLoopDelayMs")),
      };
    }
    return sum;
  }

  #metricsIn(answer: unknown): MetricsSnapshot | undefined {
    if (!isRecord(answer)) return undefined;
    const known = this.#checked.get(answer) ?? snapshotIn(answer["metrics"]);
    if (known !== undefined) this.#checked.set(answer, known);
    return known;
  }

  /** Calls `run` with the last metrics of each worker that ends. */
  onEnded(run: (snapshot: MetricsSnapshot) => void): void {
    this.#workers.onEnded((answer) => {
      const metrics = this.#metricsIn(answer);
      if (metrics !== undefined) run(metrics);
    });
  }

  readonly recorded = async (): Promise<readonly Recorded[]> =>
    (await this.#workers.ask({ of: "recorded" })).map(recordedFrom).filter((one) => one !== undefined);

  readonly backendParts = async (): Promise<readonly BackendPart[]> =>
    (await this.#workers.ask({ of: "backends" })).flatMap(partsIn);

  /** Resolves with the watch that has this audit ID, as the API shows it; undefined: no worker has it. */
  async watch(id: string): Promise<JsonObject | undefined> {
    const answers = await this.#workers.ask({ of: "watch", id });
    return answers.find((answer): answer is JsonObject => isRecord(answer));
  }

  /**
   * Returns the API's lists. `own`: the lists of this process, in which "watches" and "clients" are replaced by lists
   * of the workers' rows.
   */
  pagesOf(own: ReadonlyMap<string, Page>): ReadonlyMap<string, Page> {
    const others =
      (list: string) =>
      async (query: string): Promise<readonly FirstRows[]> =>
        (await this.#workers.ask({ of: "page", list, query }))
          .map(firstRowsIn)
          .filter((one) => one !== undefined);
    return new Map(
      Array.from(own, ([name, page]) => [name, listed.has(name) ? mergedPage(page, others(name)) : page]),
    );
  }
}

function numberAt(parent: unknown, key: string): number {
  const value = isRecord(parent) ? parent[key] : undefined;
  return typeof value === "number" ? value : 0;
}

/** True if the answer has the form that prom-client's `getMetricsAsJSON` returns. */
function isMetricsJson(answer: unknown): answer is object {
  return Array.isArray(answer) && answer.every(isMetricJson);
}

function isMetricJson(one: unknown): boolean {
  if (!isRecord(one)) return false;
  const { name, values } = one;
  return typeof name === "string" && Array.isArray(values) && values.every(isRecord);
}
