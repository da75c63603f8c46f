/** `/api/v1/stats`: counters since the start as one JSON object; the admin page reads it repeatedly and draws the rates. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Times } from "../http/times.ts";
import type { Metrics } from "../metrics/registry.ts";
import { count, type Fields, number, text, time, type ViewOf, viewOf } from "./fields.ts";

/** Of the process itself: `at` is a clock reading, `cpuMs` is of all threads. */
type ProcessStats = {
  readonly at: number;
  /** The configuration's name. */
  readonly name: string;
  readonly uptimeMs: number;
  readonly cpuMs: number;
  readonly eventLoopDelayMs: number;
  readonly rssBytes: number;
};

type Row = ProcessStats & {
  readonly version: string;
  readonly requests: Readonly<Record<string, number>>;
  readonly watchEvents: number;
};

export const statsFields = {
  kind: { schema: { const: "Stats" }, view: () => "Stats", key: () => "Stats" },
  version: text("Version of watchkeeper.", "version"),
  requests: {
    schema: {
      type: "object",
      additionalProperties: { type: "integer" },
      description: 'Since the start, by class of code ("2xx"); "none": without a response.',
    },
    view: ({ requests }) => requests,
    key: () => "",
  },
  watchEvents: count("Watch events delivered since the start.", "watchEvents"),
  at: time("Time of this response.", "at"),
  name: text("metadata.name of the configuration.", "name"),
  uptimeMs: count("Time since the start, in ms.", "uptimeMs"),
  cpuMs: count("CPU time of all threads, in ms.", "cpuMs"),
  eventLoopDelayMs: number(
    "The longest delay of the event loop since the last request for this, in ms.",
    "eventLoopDelayMs",
  ),
  rssBytes: count("Resident memory.", "rssBytes"),
} satisfies Fields<Row>;

export type Stats = ViewOf<typeof statsFields>;

/** Sums requests by the class of their code. */
export function statsOf(
  metrics: Pick<Metrics, "read">,
  own: Omit<Row, "requests" | "watchEvents">,
  times: Times,
): Stats {
  const requests: Record<string, number> = {};
  for (const [[, code = ""], sum] of metrics.read("requests_total")) {
    const kind = code === "other" ? "none" : `${code.charAt(0)}xx`;
    requests[kind] = (requests[kind] ?? 0) + sum;
  }
  const watchEvents = metrics.read("watch_events_total").reduce((sum, [, more]) => sum + more, 0);
  return viewOf(statsFields, { ...own, requests, watchEvents }, times);
}

/** Interval of the event-loop delay monitor, in ms. */
const resolutionMs = 20;

export class ProcessMonitor {
  readonly #times: Times;
  readonly #name: string;
  readonly #startedAt: number;
  #rssBytes = 0;
  readonly #delay: ReturnType<typeof monitorEventLoopDelay>;

  constructor(name: string, times: Times) {
    this.#name = name;
    this.#times = times;
    this.#startedAt = times.now();
    this.#delay = monitorEventLoopDelay({ resolution: resolutionMs });
    this.#delay.enable();
  }

  stop(): void {
    this.#delay.disable();
  }

  /** Resets the event-loop delay. */
  read(): ProcessStats {
    const now = this.#times.now();
    const { user, system } = process.cpuUsage();
    const delayMs = Math.max(0, this.#delay.max / 1e6 - resolutionMs);
    this.#delay.reset();
    return {
      at: now,
      name: this.#name,
      uptimeMs: Math.round(now - this.#startedAt),
      cpuMs: Math.round((user + system) / 1000),
      eventLoopDelayMs: Math.round(delayMs * 10) / 10,
      rssBytes: this.#rssNow(),
    };
  }

  /** Node opens a file in /proc; without a free descriptor the last value stands. */
  #rssNow(): number {
    try {
      this.#rssBytes = process.memoryUsage.rss();
    } catch {
      // EMFILE: operators read this most while something is wrong.
    }
    return this.#rssBytes;
  }
}
