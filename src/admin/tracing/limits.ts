/** Limits of the export of traces (see src/base/limits.ts). */
export const tracingLimits = {
  /** Maximum number of traces that wait for the export thread: as OpenTelemetry's batch processor, about 2 MiB. */
  waiting: 2048,
  /** Number of traces in a message to the export thread. Writing a message delays the data path by about 0.3 ms. */
  batch: 128,
  /** Maximum number of unanswered messages to the export thread. Others wait, so that its memory is bounded. */
  unanswered: 8,
  /** Ms after which traces go to the export thread, even if they are few. */
  flushMs: 1000,
  /** Ms that the collector has for a batch, with all retries. */
  exportMs: 10_000,
  /** Ms that a stopping process waits for the last batches. */
  stopMs: 2000,
  /** Ms between the end of an export thread and the start of the next one. */
  restartMs: 5000,
  /** Heap limit of the export thread in MiB: the thread needs 20, and the unanswered batches a few more. */
  threadHeapMiB: 96,
};
