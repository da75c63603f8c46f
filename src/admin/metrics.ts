/**
 * Numbers for Prometheus. The path keeps plain fields, which cost nothing; they are copied when somebody asks. The
 * only file that knows prom-client, whose project has moved to another package with the same face (ecosystem.md F14).
 */
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import { type Family, families } from "./families.ts";
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
  readonly bufferedBytes: number;
  readonly config: { readonly isGood: boolean; readonly loadedAtMs: number };
  readonly certificates: readonly {
    readonly purpose: string;
    readonly name: string;
    readonly notAfterMs: number;
  }[];
  readonly droppedLogLines: number;
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
    metrics() {
      const now = snapshot();
      for (const { family, metric } of copied) copy(family, metric, family.rows(now, told));
      return registry.metrics();
    },
  };
}

type Metric = Counter | Gauge;

function metricOf({ type, name, help, labels }: Family, registry: Registry): Metric {
  const options = { name: `watchkeeper_${name}`, help, labelNames: labels, registers: [registry] };
  return type === "counter" ? new Counter(options) : new Gauge(options);
}

function copy({ name, labels }: Family, metric: Metric, rows: readonly Row[]): void {
  const series = new Series(name === "requests_total" ? limits.requestSeries : limits.familySeries);
  for (const [values, value] of rows) series.add(values, value);
  metric.reset();
  for (const [values, value] of series.rows)
    metric.inc(Object.fromEntries(labels.map((label, at) => [label, values[at] ?? ""])), value);
}
