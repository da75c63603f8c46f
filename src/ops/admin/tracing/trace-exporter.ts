/**
 * Sends the traces of finished requests to a thread that exports them with OpenTelemetry's SDK. The data path's thread
 * only writes batches of records as JSON. If the collector or the thread is too slow, traces are dropped and counted.
 */
import { Worker } from "node:worker_threads";
import type { Clock } from "../../../base/clock.ts";
import { wordsOf } from "../../../base/failure.ts";
import type { Journal } from "../../../events/journal.ts";
import type { TraceRecord, TraceSink } from "../../../proxy/observe/request-trace.ts";
import { ownModule } from "../../program/own-files.ts";
import { ownVersion } from "../../program/version.ts";
import { tracingLimits } from "./limits.ts";

/** The start parameters of the export thread. */
export type ExportOrder = { readonly endpoint: string; readonly version: string };

/** The result of the export of one batch. `reason`: why it failed; "": it succeeded. */
export type Exported = { readonly spans: number; readonly reason: string };

export type SpanCounts = { readonly exported: number; readonly failed: number; readonly dropped: number };

type Parts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Main file of the thread; default: export-thread-main beside this file. */
  readonly thread?: string | URL;
};

const threadFile = ownModule("src/ops/admin/tracing/export-thread-main");
const resourceLimits = { maxOldGenerationSizeMb: tracingLimits.threadHeapMiB };

function spansIn({ spans }: TraceRecord): number {
  return spans.length + 1;
}

export class TraceExporter implements TraceSink {
  readonly #parts: Parts;
  readonly #counts = { exported: 0, failed: 0, dropped: 0 };
  /** The collector's URL; "": no trace is exported. */
  #endpoint = "";
  #worker: Worker | undefined;
  #waiting: TraceRecord[] = [];
  /** Number of spans in each batch that the thread has not answered yet, oldest batch first. */
  #unanswered: number[] = [];
  #stopTimer: (() => void) | undefined;
  /** Clock reading before which no new export thread is started. */
  #restartAt = 0;
  /** Why the last batch failed; "": it succeeded. A reason is journaled only if it differs from the previous one. */
  #complaint = "";
  #onIdle: (() => void) | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Number of spans by result. */
  get counts(): SpanCounts {
    return this.#counts;
  }

  /**
   * Sets the collector's URL for OTLP over HTTP ("": no export). If it has changed, ends the thread, counts the traces
   * that wait as dropped, and counts the batches without an answer as failed.
   */
  configure(endpoint: string): void {
    if (endpoint === this.#endpoint) return;
    this.#endpoint = endpoint;
    this.#drop();
    this.#end();
  }

  take(record: TraceRecord): void {
    if (this.#endpoint === "" || this.#waiting.length >= tracingLimits.waiting) {
      this.#counts.dropped += spansIn(record);
      return;
    }
    this.#waiting.push(record);
    if (this.#waiting.length === tracingLimits.batch) this.#send();
    this.#stopTimer ??= this.#parts.clock.after(tracingLimits.flushMs, () => {
      this.#stopTimer = undefined;
      this.#send();
    });
  }

  /** Exports the traces that wait, within `tracingLimits.stopMs`, and ends the thread. */
  async stop(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onIdle = resolve;
    this.#send();
    if (this.#unanswered.length === 0) resolve();
    const cancel = this.#parts.clock.after(tracingLimits.stopMs, resolve);
    await promise;
    cancel();
    this.configure("");
  }

  #send(): void {
    if (this.#waiting.length === 0) return;
    const worker = this.#worker ?? this.#start();
    if (worker === undefined) return;
    while (this.#waiting.length > 0 && this.#unanswered.length < tracingLimits.unanswered) {
      const batch = this.#waiting.splice(0, tracingLimits.batch);
      this.#unanswered.push(batch.reduce((sum, record) => sum + spansIn(record), 0));
      worker.postMessage(JSON.stringify(batch), []);
    }
  }

  #start(): Worker | undefined {
    const { clock, thread = threadFile } = this.#parts;
    if (this.#endpoint === "" || clock.now() < this.#restartAt) return undefined;
    const order: ExportOrder = { endpoint: this.#endpoint, version: ownVersion() };
    try {
      const worker = new Worker(thread, { workerData: order, execArgv: [], resourceLimits });
      worker.unref();
      worker.on("message", (outcome: Exported) => this.#answered(worker, outcome));
      worker.on("error", (reason: unknown) => this.#failed(worker, wordsOf(reason)));
      worker.on("exit", (code) => this.#failed(worker, `The export thread ended with exit code ${code}`));
      this.#worker = worker;
      return worker;
    } catch (reason) {
      this.#restartAt = clock.now() + tracingLimits.restartMs;
      this.#complain(wordsOf(reason));
      return undefined;
    }
  }

  #answered(worker: Worker, { spans, reason }: Exported): void {
    if (worker !== this.#worker) return;
    this.#unanswered.shift();
    this.#counts[reason === "" ? "exported" : "failed"] += spans;
    this.#complain(reason);
    this.#send();
    if (this.#unanswered.length === 0) this.#onIdle?.();
  }

  /** Counts the unanswered spans of a dead thread as failed. A second call for the same thread has no effect. */
  #failed(worker: Worker, reason: string): void {
    if (worker !== this.#worker) return;
    this.#end();
    this.#restartAt = this.#parts.clock.now() + tracingLimits.restartMs;
    this.#complain(reason);
    this.#onIdle?.();
  }

  #end(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    for (const spans of this.#unanswered) this.#counts.failed += spans;
    this.#unanswered = [];
    worker?.terminate().catch(() => {});
  }

  #drop(): void {
    for (const record of this.#waiting) this.#counts.dropped += spansIn(record);
    this.#waiting = [];
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  #complain(reason: string): void {
    const isNew = reason !== this.#complaint;
    this.#complaint = reason;
    if (isNew && reason !== "")
      this.#parts.journal.write({ kind: "tracing.failed", endpoint: this.#endpoint, reason });
  }
}
