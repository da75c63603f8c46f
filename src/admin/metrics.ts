/**
 * Numbers for Prometheus. The path keeps plain fields, which cost nothing; they are copied when somebody asks. The
 * only file that knows prom-client, whose project has moved to another package with the same face.
 */
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { Histogram } from "../histogram.ts";
import type { Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import { families, verbOf } from "./families.ts";
import type { Family } from "./family.ts";
import { histogramText, requestDuration } from "./histogram-text.ts";
import { type Row, Series } from "./series.ts";
import { Tally } from "./tally.ts";

/** The state of the proxy at one moment, as plain numbers. Counts only grow; of rows with equal labels the sum is shown. */
export type Snapshot = {
  readonly version: string;
  readonly backends: readonly {
    readonly name: string;
    readonly state: string;
    readonly lanes: readonly {
      readonly trust: string;
      readonly kind: string;
      readonly open: number;
      readonly streams: number;
    }[];
    /** What its detectors have measured; 0 before they have. */
    readonly pingP99Ms: number;
    readonly suspectMs: number;
    readonly probes: { readonly answers: number; readonly failures: number; readonly lastMs: number };
    /** An operator wants it let go. */
    readonly isDrained: boolean;
  }[];
  /** Clients' sessions; "" for sockets without ALPN. */
  readonly sessions: readonly { readonly alpn: string; readonly open: number }[];
  readonly handshakeErrors: number;
  readonly exchanges: readonly {
    readonly kind: "plain" | "watch" | "long-running" | "upgrade";
    readonly active: number;
  }[];
  /** `verb` as in RequestInfo, or the method; `code` 0 when there was no answer; `backend` "" when none was chosen. */
  readonly requests: readonly {
    readonly verb: string;
    readonly code: number;
    readonly backend: string;
    readonly count: number;
  }[];
  readonly refusedSessions: readonly { readonly reason: string; readonly count: number }[];
  readonly resets: readonly { readonly reason: string; readonly count: number }[];
  readonly watchEvents: number;
  readonly watchEventBytes: number;
  readonly watches: {
    readonly states: ReadonlyMap<string, number>;
    /** Watches without a leg, which wait to be asked for elsewhere. */
    readonly waiting: number;
    readonly moves: ReadonlyMap<string, number>;
    readonly ends: ReadonlyMap<string, number>;
    readonly shadows: number;
    readonly renewals: number;
    readonly violations: number;
    /** Of the time-travel guard: answers from the past, requests that demanded none, refusals of those. */
    readonly timeTravel: { readonly outdated: number; readonly demanded: number; readonly refused: number };
    /** Caches that stand still: a backend and a resource each. */
    readonly stalls: number;
  };
  /** Sockets by backend, and bytes as clients see them. */
  readonly passthrough: {
    readonly counts: ReadonlyMap<string, number>;
    readonly bytes: { readonly sent: number; readonly received: number };
  };
  readonly bufferedBytes: number;
  /** Requests that were asked twice; those that wait now since no backend can be asked. */
  readonly hedges: number;
  readonly heldRequests: number;
  readonly config: { readonly isGood: boolean; readonly loadedAtMs: number };
  /** Of each cluster that looks for backends; "" is the only one. */
  readonly discovery: readonly {
    readonly cluster: string;
    readonly lastSuccessAtMs: number;
    readonly failures: number;
    readonly found: number;
  }[];
  readonly certificates: readonly {
    readonly purpose: string;
    readonly name: string;
    readonly notAfterMs: number;
  }[];
  readonly droppedLogLines: number;
  readonly incidents: {
    readonly counts: readonly { readonly kind: string; readonly backend: string; readonly count: number }[];
    readonly active: readonly { readonly kind: string; readonly backend: string }[];
  };
  /** Callers that are remembered, and the requests of all there were by agent. */
  readonly clients: { readonly count: number; readonly requests: ReadonlyMap<string, number> };
  /** But for the nodes' own leases. */
  readonly locks: readonly {
    readonly namespace: string;
    readonly name: string;
    readonly holder: string;
    readonly source: string;
    readonly renewedAtMs: number;
    readonly verdict: string;
  }[];
  /** Of plain requests, in seconds, by verb. */
  readonly durations: ReadonlyMap<string, Histogram>;
};

/** What a scrape is answered with. */
export type Metrics = { readonly metrics: () => Promise<string>; readonly contentType: string };

/** Of Node's own numbers, those for which every open socket is visited: 50,000 watches would have to wait. */
const tooDear = ["handles", "requests", "resources"].flatMap((what) => [
  `nodejs_active_${what}`,
  `nodejs_active_${what}_total`,
]);

export function createMetrics(journal: Journal, snapshot: () => Snapshot): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of tooDear) registry.removeSingleMetric(name);
  const told = new Tally(journal);
  const copied = families.map((family) => ({ family, metric: metricOf(family, registry) }));
  return {
    contentType: registry.contentType,
    async metrics() {
      const now = snapshot();
      for (const { family, metric } of copied) copy(family, metric, family.rows(now, told));
      return `${await registry.metrics()}${histogramText(requestDuration, verbsOf(now.durations))}`;
    },
  };
}

/** Two verbs of RequestInfo may be one of the metric's: they are summed. */
function verbsOf(durations: ReadonlyMap<string, Histogram>): ReadonlyMap<string, Histogram> {
  const byVerb = new Map<string, Histogram>();
  for (const [word, histogram] of durations) {
    const verb = verbOf(word);
    byVerb.set(verb, histogram.plus(byVerb.get(verb)));
  }
  return byVerb;
}

type Metric = Counter | Gauge;

function metricOf({ type, name, help, labels }: Family, registry: Registry): Metric {
  const options = { name: `watchkeeper_${name}`, help, labelNames: labels, registers: [registry] };
  return type === "counter" ? new Counter(options) : new Gauge(options);
}

function copy({ labels, cap = limits.familySeries }: Family, metric: Metric, rows: readonly Row[]): void {
  const series = new Series(cap);
  for (const [values, value] of rows) series.add(values, value);
  metric.reset();
  for (const [values, value] of series.rows) metric.inc(Object.fromEntries(labelled(labels, values)), value);
}

/** An empty "cluster" is the only one, which is not told: for Prometheus that is the same. */
function labelled(labels: readonly string[], values: readonly string[]): [label: string, value: string][] {
  const all = labels.map((label, at): [string, string] => [label, values[at] ?? ""]);
  return all.filter(([label, value]) => label !== "cluster" || value !== "");
}
