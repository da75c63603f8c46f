/** Objects of the JSON API, for tests of the admin page. */
import type {
  Backend,
  Change,
  Columns,
  HistoryAnswer,
  Incident,
  Recorded,
  Stats,
  Values,
} from "../../src/ops/page/data/rows.d.ts";

export const now = Date.parse("2026-11-22T12:00:00Z");

/** Returns the time `agoMs` milliseconds before `now`. */
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
    watchLagMs: 0,
    watchDelayMs: 1.2,
    watchDelayResource: "/pods",
    unreachableAPIs: [],
    identities: [],
    suspectMs: 500,
    version: "v1.36.1",
    isDrained: false,
    shield: { cap: 0, waiting: 0, refused: 0 },
    probes: { ok: 1021, failed: 12, lastMs: 4 },
    upstreamConnections: [{ class: "proven", kind: "long", open: 2, streams: 268 }],
    requests: { watches: 268, plain: 3, longRunning: 2 },
    load: {
      streams: 312,
      capacity: 1,
      utilization: 0.31,
      requestsPerSecond: 4.5,
      getMs: 1.2,
      listMs: 8.4,
      tooManyRequests: 0,
    },
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
    causedBy: { count: 0, names: [] },
    evidence: [
      {
        at: timeAt(40_500),
        detector: "ping",
        value: 612,
        threshold: 500,
        unit: "ms",
        text: "suspect: PING unanswered for 612 ms",
        auditId: "",
        repeats: 0,
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
    listeners: [],
    version: "0.1.0",
    uptimeMs: 273_600_000 + ms - now,
    requests,
    watchEvents: 0,
    cpuMs: 0,
    eventLoopDelayMs: 0,
    rssBytes: 0,
  };
}

/** A recorded history whose columns begin with step 0, five minutes before `now`. */
export function recordedOf(backends: Readonly<Record<string, Columns>>, process: Columns = {}): Recorded {
  const steps = [...Object.values(backends), process].flatMap((columns) => Object.values(columns));
  const next = Math.max(0, ...steps.map(({ length }) => length));
  return {
    startedMs: now - 300_000,
    stepMs: 5_000,
    first: 0,
    next,
    process,
    backends: new Map(Object.entries(backends)),
  };
}

/** The hour before `now` in steps of 5 s. The backend cp-2 sends nothing in the last 8 steps. */
const steps = 720;
const stepMs = 5_000;
const silentSteps = 8;

/** Returns the response to `/api/v1/history?after=N`: one hour of two backends under a varying load. */
export function historyAnswer(after: number): HistoryAnswer {
  const first = after + 1;
  const column = (of: (step: number) => number): Values =>
    Array.from({ length: Math.max(0, steps - first) }, (_, at) => {
      const value = of(first + at);
      return Number.isNaN(value) ? null : Math.round(value * 10) / 10;
    });
  const wave = (step: number, period: number): number =>
    1 + 0.2 * Math.sin(step / period) + 0.09 * Math.sin(step ** 2 * 0.37);
  const isSilent = (step: number): boolean => step >= steps - silentSteps;
  const after2 =
    (whole: number, half: number) =>
    (step: number): number =>
      isSilent(step) ? whole : half;
  const series = (isDead: boolean): Columns => {
    const share = isDead ? after2(0, 1) : after2(2, 1);
    return {
      state: column((step) => (isDead && isSilent(step) ? (step === steps - silentSteps ? 3 : 4) : 0)),
      requests: column((step) => 180 * wave(step, 40) * share(step)),
      serverErrors: column(() => 0),
      tooManyRequests: column((step) => (isSilent(step) && !isDead && step < steps - 5 ? 1.4 : 0)),
      p50Ms: column((step) => (share(step) === 0 ? Number.NaN : 3 * wave(step, 25))),
      p99Ms: column((step) =>
        share(step) === 0 ? Number.NaN : 22 * wave(step, 25) * (isSilent(step) ? 2.2 : 1),
      ),
      pingMs: column(() => 0.8),
      watchDelayMs: column((step) => (share(step) === 0 ? Number.NaN : 2 * wave(step, 30))),
      load: column((step) => 176 * share(step) + 90 * wave(step, 40) * share(step)),
      watches: column((step) => 131 * share(step)),
      movedOut: column((step) => (isDead && step === steps - silentSteps ? 131 : 0)),
      movedIn: column((step) => (!isDead && step === steps - silentSteps ? 131 : 0)),
      "streams-node": column((step) => 96 * share(step)),
      "streams-control-plane": column((step) => 34 * share(step)),
      "streams-controller": column((step) => 41 * share(step)),
      "streams-kubectl": column((step) => 2 * share(step)),
      "streams-other": column((step) => 3 * share(step)),
    };
  };
  return {
    startedAt: timeAt(steps * stepMs),
    stepMs,
    first,
    next: Math.max(first, steps),
    process: {
      requests: column((step) => 360 * wave(step, 40)),
      failures: column((step) => (step === steps - silentSteps ? 0.6 : 0)),
      watchEvents: column((step) => 900 * wave(step, 15)),
      cpuMs: column((step) => 140 * wave(step, 40)),
      eventLoopDelayMs: column((step) => 0.6 * wave(step, 7)),
      rssMiB: column(() => 152),
      watches: column(() => 262),
      clientConnections: column(() => 118),
    },
    backends: [
      { name: "cp-1", series: series(false) },
      { name: "cp-2", series: series(true) },
    ],
  };
}

/** The fields of a client without any identity. */
export const noIdentity = {
  clientKind: "other",
  subject: "",
  subjectSource: "none",
  pod: "",
  node: "",
  agent: "",
  client: "",
};
