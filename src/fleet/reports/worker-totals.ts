/**
 * Collects the answers of this process's workers (worker-answers.ts) for the admin page, the API and the metrics. The
 * workers run the same program, so their answers are not checked.
 */
import { isRecord } from "../../base/json.ts";
import type { BackendPart } from "../../ops/admin/api/backend-parts.ts";
import type { Recorded } from "../../ops/admin/history/recorded.ts";
import { type FirstRows, type JsonObject, mergedPage, type Page } from "../../ops/admin/http/listing.ts";
import type { WorkerMetrics } from "../../ops/admin/metrics/registry.ts";
import type { MetricsSnapshot } from "../../ops/admin/metrics/snapshot.ts";
import type { Question } from "../workers/messages.ts";

/** The part of src/fleet/workers/parent.ts that this file uses. */
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

/** The form of the answers to each question. */
type Answers = {
  readonly snapshot: { readonly metrics: MetricsSnapshot; readonly monitor: ProcessCosts };
  readonly process: object;
  readonly recorded: Recorded;
  readonly backends: readonly BackendPart[];
  readonly page: FirstRows;
};

/** The lists whose rows exist only in the workers. */
const listed: ReadonlySet<string> = new Set(["watches", "clients"]);

export class WorkerTotals implements WorkerMetrics {
  readonly #workers: Workers;

  constructor(workers: Workers) {
    this.#workers = workers;
  }

  readonly snapshots = (): readonly MetricsSnapshot[] =>
    answersTo("snapshot", this.#workers.snapshots).map(({ metrics }) => metrics);

  readonly processes = async (): Promise<readonly object[]> =>
    answersTo("process", await this.#workers.ask({ of: "process" }));

  /** The sums of CPU time and memory over all workers, and the longest delay of any worker's event loop. */
  get monitored(): ProcessCosts {
    let sum: ProcessCosts = { cpuMs: 0, rssBytes: 0, eventLoopDelayMs: 0 };
    for (const { monitor } of answersTo("snapshot", this.#workers.snapshots)) {
      sum = {
        cpuMs: sum.cpuMs + monitor.cpuMs,
        rssBytes: sum.rssBytes + monitor.rssBytes,
        eventLoopDelayMs: Math.max(sum.eventLoopDelayMs, monitor.eventLoopDelayMs),
      };
    }
    return sum;
  }

  /** Calls `run` with the last metrics of each worker that ends. */
  onEnded(run: (snapshot: MetricsSnapshot) => void): void {
    this.#workers.onEnded((answer) => {
      for (const { metrics } of answersTo("snapshot", [answer])) run(metrics);
    });
  }

  readonly recorded = async (): Promise<readonly Recorded[]> =>
    answersTo("recorded", await this.#workers.ask({ of: "recorded" }));

  readonly backendParts = async (): Promise<readonly BackendPart[]> =>
    answersTo("backends", await this.#workers.ask({ of: "backends" })).flat();

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
        answersTo("page", await this.#workers.ask({ of: "page", list, query }));
    return new Map(
      Array.from(own, ([name, page]) => [name, listed.has(name) ? mergedPage(page, others(name)) : page]),
    );
  }
}

/** Returns the answers to a question. An answer is undefined if the worker has not answered yet. */
function answersTo<Of extends keyof Answers>(_of: Of, answers: readonly unknown[]): readonly Answers[Of][] {
  return answers.filter((answer): answer is Answers[Of] => answer !== undefined);
}
