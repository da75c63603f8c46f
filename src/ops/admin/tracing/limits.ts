/** Limits of the export of traces (see src/base/limits.ts). */
export const tracingLimits = {
  /** Maximum number of traces that wait for the export thread: OpenTelemetry's own default, about 2 MiB. */
  waiting: 2048,
  /** Maximum number of traces in a message to the export thread. Writing it delays the data path by about 0.3 ms. */
  batch: 128,
  /**
   * Maximum number of unanswered messages to the export thread. Further traces wait, which bounds the thread's memory.
   */
  unanswered: 8,
  /** Ms after which waiting traces are sent to the export thread, even if they fill no batch. */
  flushMs: 1000,
  /** Ms that the export of a batch may take, retries included. */
  exportMs: 10_000,
  /** Ms that a stopping process waits for the last batches. */
  stopMs: 2000,
  /** Ms between the end of an export thread and the start of the next one. */
  restartMs: 5000,
  /** Heap limit of the export thread in MiB. The thread needs 20 MiB, and the unanswered batches a few more. */
  threadHeapMiB: 96,
};
