/** `/api/v1/stats`: counters since the start as one JSON object; the admin page reads it repeatedly and draws the rates. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { JsonObject } from "../http/listing.ts";
import type { Times } from "../http/times.ts";
import type { Metrics } from "./registry.ts";

/** Sums requests by the class of their code ("2xx"); "none": without a response. */
export function statsOf(metrics: Pick<Metrics, "read">, version: string, own: ProcessStats): JsonObject {
  const requests: Record<string, number> = {};
  for (const [[, code = ""], count] of metrics.read("requests_total")) {
    const kind = code === "other" ? "none" : `${code.charAt(0)}xx`;
    requests[kind] = (requests[kind] ?? 0) + count;
  }
  const watchEvents = metrics.read("watch_events_total").reduce((sum, [, count]) => sum + count, 0);
  return { kind: "Stats", version, requests, watchEvents, ...own };
}

/** Of the process itself; times in ms. */
export type ProcessStats = {
  readonly at: string;
  /** The configuration's name. */
  readonly name: string;
  readonly uptimeMs: number;
  /** CPU time of all threads. */
  readonly cpuMs: number;
  /** The longest delay of the event loop since the last read. */
  readonly eventLoopDelayMs: number;
  readonly rssBytes: number;
};

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
      at: this.#times.timeOf(now),
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
