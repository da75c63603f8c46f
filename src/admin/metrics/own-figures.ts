/** What the process itself costs: processor, memory, and how late the thread is that serves clients. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Times } from "../http/times.ts";
import type { OwnFigures } from "./figures.ts";

/** Between two looks at the loop, in ms; what is later than that was late. */
const resolutionMs = 20;

export class OwnFigureSource {
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

  /** Now. The loop's lateness begins anew. */
  read(): OwnFigures {
    const now = this.#times.now();
    const { user, system } = process.cpuUsage();
    const eventLoopDelayMs = Math.max(0, this.#delay.max / 1e6 - resolutionMs);
    this.#delay.reset();
    return {
      at: this.#times.timeOf(now),
      name: this.#name,
      uptimeMs: Math.round(now - this.#startedAt),
      cpuMs: Math.round((user + system) / 1000),
      eventLoopDelayMs: Math.round(eventLoopDelayMs * 10) / 10,
      rssBytes: this.#rssNow(),
    };
  }

  /** Node reads it in /proc: without a descriptor to do so it is what it was. */
  #rssNow(): number {
    try {
      this.#rssBytes = process.memoryUsage.rss();
    } catch {
      // EMFILE: the page is looked at most when something is wrong.
    }
    return this.#rssBytes;
  }
}
