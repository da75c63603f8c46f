/** `/api/v1/stats`: counters since the process started, as one JSON object. The admin page reads it at intervals. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Times } from "../http/times.ts";
import type { Metrics } from "../metrics/registry.ts";
import { count, type Fields, list, number, text, time, type ViewOf, viewOf, words } from "./fields.ts";

/**
 * Measurements of this process. `at`: clock reading in ms. `cpuMs`: CPU time of all threads in ms since the start.
 * `eventLoopDelayMs`: the longest delay of the event loop since the previous read.
 */
type ProcessStats = {
  readonly at: number;
  readonly uptimeMs: number;
  readonly cpuMs: number;
  readonly eventLoopDelayMs: number;
  readonly rssBytes: number;
};

type ListenerAddress = { readonly name: string; readonly address: string };

const listenerFields = {
  name: text("Name of the listener in the configuration.", "name"),
  address: text("IP address and port to which the listener is bound.", "address"),
} satisfies Fields<ListenerAddress>;

type StatsRow = ProcessStats & {
  readonly version: string;
  readonly name: string;
  /** The settings that have changed in the file and take effect only after a restart. */
  readonly restartRequired: readonly string[];
  /** The listeners that are open, with the address that each is bound to, such as "0.0.0.0:8443". */
  readonly listeners: readonly ListenerAddress[];
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
      description: 'Requests since the start, by class of code ("2xx"); "none": without a response.',
    },
    view: ({ requests }) => requests,
    key: () => "",
  },
  watchEvents: count("Watch events delivered since the start.", "watchEvents"),
  at: time("Time of this response.", "at"),
  name: text("metadata.name of the configuration.", "name"),
  restartRequired: words(
    "Settings that have changed in the file and take effect only after a restart.",
    "restartRequired",
  ),
  listeners: list("The listeners that accept clients.", listenerFields, "listeners"),
  uptimeMs: count("Time since the start, in ms.", "uptimeMs"),
  cpuMs: count("CPU time of all threads, in ms.", "cpuMs"),
  eventLoopDelayMs: number(
    "The longest delay of the event loop since the last request for these statistics, in ms.",
    "eventLoopDelayMs",
  ),
  rssBytes: count("Resident memory, in bytes.", "rssBytes"),
} satisfies Fields<StatsRow>;

export type Stats = ViewOf<typeof statsFields>;

/** Returns the statistics, with the requests summed by class of status code. */
export function statsOf(
  metrics: Pick<Metrics, "read">,
  own: Omit<StatsRow, "requests" | "watchEvents">,
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

const delayResolutionMs = 20;

export class ProcessMonitor {
  readonly #times: Times;
  readonly #startedAt: number;
  #rssBytes = 0;
  readonly #delay: ReturnType<typeof monitorEventLoopDelay>;

  constructor(times: Times) {
    this.#times = times;
    this.#startedAt = times.now();
    this.#delay = monitorEventLoopDelay({ resolution: delayResolutionMs });
    this.#delay.enable();
  }

  stop(): void {
    this.#delay.disable();
  }

  /** Returns the current measurements. Restarts the measurement of the event-loop delay. */
  read(): ProcessStats {
    const now = this.#times.now();
    const { user, system } = process.cpuUsage();
    const delayMs = Math.max(0, this.#delay.max / 1e6 - delayResolutionMs);
    this.#delay.reset();
    return {
      at: now,
      uptimeMs: Math.round(now - this.#startedAt),
      cpuMs: Math.round((user + system) / 1000),
      eventLoopDelayMs: Math.round(delayMs * 10) / 10,
      rssBytes: this.#rssNow(),
    };
  }

  #rssNow(): number {
    try {
      this.#rssBytes = process.memoryUsage.rss();
    } catch {
      // If no descriptor is free, /proc cannot be read (EMFILE), and the previous value is returned.
    }
    return this.#rssBytes;
  }
}
