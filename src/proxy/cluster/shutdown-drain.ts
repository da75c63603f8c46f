/**
 * Drains the process, in this order:
 *
 *     readiness fails ── shutdownDelay ──▶ no new sockets ──▶ GOAWAY, two steps ──▶ plain requests finish
 *                                                     └──▶ watches end between events, in the first half of `timeout`
 *                                                     └──▶ exec, port-forward, logs -f: until they end themselves
 *     all over, or timeout ──▶ what is left is cut
 */
import type { Clock } from "../../base/clock.ts";
import { stop as enough, inSlices } from "../../base/slices.ts";
import type { Journal } from "../../events/journal.ts";
import type { LiveRequests } from "../request/active-requests.ts";
import type { Exchange } from "../request/exchange.ts";

export type DrainParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly exchanges: LiveRequests;
  /** Returns the number of bytes buffered for slow clients, also of responses whose requests are over. */
  readonly queuedBytes: () => number;
  readonly upgrades: () => number;
  readonly close: () => void;
  readonly goAway: () => void;
  readonly cut: () => void;
  /** The processes that serve the clients of this one, and drain at the same time; default: none. */
  readonly workers?: DrainedWorkers | undefined;
};

export type DrainedWorkers = {
  /** Number of processes that have not ended. */
  readonly alive: number;
  readonly requests: number;
  drain(times: DrainTimes): unknown;
};

export type DrainTimes = { readonly shutdownDelayMs: number; readonly timeoutMs: number };

const endCheckMs = 50;

/** Milliseconds that a worker has, beyond the drain's timeout, to end by itself. */
const workerEndMs = 2000;

/** Resolves when no request and no tunnel is left. `times.timeoutMs`, or a second signal (`hurry`), ends the rest. */
export async function drain(parts: DrainParts, times: DrainTimes, hurry: AbortSignal): Promise<void> {
  const { clock, journal, exchanges } = parts;
  journal.write({ kind: "drain.started" });
  await pause(clock, times.shutdownDelayMs, hurry);
  parts.close();
  parts.goAway();
  const { workers } = parts;
  workers?.drain({ ...times, shutdownDelayMs: 0 });
  const deadline = clock.now() + times.timeoutMs + (workers === undefined ? 0 : workerEndMs);
  const drainSchedule = new WatchDrainSchedule(exchanges, Math.ceil(times.timeoutMs / 2 / endCheckMs));
  const isBusy = (): boolean =>
    exchanges.size + parts.upgrades() + parts.queuedBytes() + (workers?.alive ?? 0) > 0;
  while (isBusy() && clock.now() < deadline && !hurry.aborted) {
    await drainSchedule.look(clock);
    await pause(clock, endCheckMs, hurry);
  }
  const cut = exchanges.size + parts.upgrades() + (workers?.requests ?? 0);
  await walkInSlices(clock, exchanges.live, (exchange) => {
    if (!exchange.isEnded) exchange.cut();
  });
  parts.cut();
  journal.write({ kind: "drain.ended", cut });
}

/**
 * Ends watches evenly over the given number of checks, so that their clients do not all reconnect elsewhere at once
 * (F17). Each check counts the watches again, because a client that has not read the GOAWAY yet may open another watch.
 */
class WatchDrainSchedule {
  readonly #exchanges: LiveRequests;
  readonly #ending = new WeakSet<Exchange>();
  #looks: number;

  constructor(exchanges: LiveRequests, looks: number) {
    this.#exchanges = exchanges;
    this.#looks = looks;
  }

  async look(clock: Clock): Promise<void> {
    const left: Exchange[] = [];
    await walkInSlices(clock, this.#exchanges.live, (one) => {
      if (one.context.kind === "watch" && !this.#ending.has(one)) left.push(one);
    });
    let due = Math.ceil(left.length / Math.max(1, this.#looks));
    this.#looks -= 1;
    await walkInSlices(clock, left, (watch) => {
      if (due === 0) return enough;
      // A watch that is unanswered or undecodable cannot end between two events. A later check tries again.
      if (!watch.letWatchEnd()) return undefined;
      this.#ending.add(watch);
      due -= 1;
      return undefined;
    });
  }
}

function walkInSlices<T>(clock: Clock, entries: Iterable<T>, visit: (entry: T) => unknown): Promise<void> {
  return new Promise((resolve) => {
    inSlices(clock, entries, visit, resolve);
  });
}

function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      stop();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const stop = clock.after(ms, done);
    signal.addEventListener("abort", done);
  });
}
