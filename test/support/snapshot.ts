import type { Snapshot } from "../../src/admin/metrics.ts";

/** A proxy with nothing to do, for a test to change. */
export const idle: Snapshot = {
  version: "0.1.0",
  backends: [],
  sessions: [],
  exchanges: [],
  requests: [],
  handshakeErrors: 0,
  refusedSessions: [],
  resets: [],
  watchEvents: 0,
  watchEventBytes: 0,
  bufferedBytes: 0,
  config: { isGood: true, loadedAtMs: 1_800_000_000_000 },
  certificates: [],
  droppedLogLines: 0,
};
