/** What the JSON API might say, for tests of the page. */
import type { Backend, Change, Incident, Stats } from "../../src/page/rows.d.ts";

export const now = Date.parse("2026-11-22T12:00:00Z");

/** So many milliseconds before `now`. */
export function timeAt(agoMs: number): string {
  return new Date(now - agoMs).toISOString();
}

export function changeAt(agoMs: number, from: string, to: string): Change {
  return {
    at: timeAt(agoMs),
    from,
    to,
    detector: "ping",
    valueMs: 612,
    limitMs: 500,
    reason: "for a reason",
  };
}

export function backend(changed: Partial<Backend> = {}): Backend {
  return {
    name: "cp-1",
    address: "10.0.0.11:6443",
    state: "ready",
    since: timeAt(60_000),
    sinceAgeMs: 60_000,
    detector: "ping",
    reason: "/readyz: ok",
    pingP99Ms: 0.8,
    suspectMs: 500,
    version: "v1.36.1",
    isDrained: false,
    probes: { ok: 1021, failed: 12, lastMs: 4 },
    upstreamConnections: [{ class: "proven", kind: "long", open: 2, streams: 268 }],
    requests: { watches: 268, plain: 3, longRunning: 2 },
    stalledResources: [],
    certificates: [
      {
        purpose: "backend-loopback",
        name: "cp-1",
        notAfter: timeAt(-9e9),
        leftMs: 9e9,
        level: "ok",
        refused: "",
      },
    ],
    history: [],
    ...changed,
  };
}

export function incident(changed: Partial<Incident> = {}): Incident {
  return {
    id: 42,
    kind: "backend-blackholed",
    severity: "critical",
    state: "active",
    subject: "cp-2",
    backend: "cp-2",
    summary: "cp-2: dead",
    startedAt: timeAt(41_000),
    detectedAt: timeAt(40_000),
    detectionMs: 1_000,
    lastSeenAt: timeAt(0),
    endedAt: null,
    durationMs: 41_000,
    resolution: "",
    impact: { watchesMoved: 131, slowestMoveMs: 702, watchesEnded: 0, tunnelsEnded: 3, requestsFailed: 0 },
    affected: { count: 3, names: ["10.0.0.7 kubectl/v1.36.1"] },
    evidence: [
      {
        at: timeAt(40_500),
        detector: "ping",
        value: 612,
        threshold: 500,
        unit: "ms",
        text: "suspect: PING unanswered for 612 ms",
        auditId: "",
      },
    ],
    evidenceOmitted: 0,
    ...changed,
  };
}

export function figuresAt(ms: number): Stats {
  const at = new Date(ms).toISOString();
  const requests = { "2xx": 0, "5xx": 0 };
  return {
    kind: "Stats",
    at,
    name: "prod-eu1",
    restartRequired: [],
    version: "0.1.0",
    uptimeMs: 273_600_000 + ms - now,
    requests,
    watchEvents: 0,
    cpuMs: 0,
    eventLoopDelayMs: 0,
    rssBytes: 0,
  };
}
