/**
 * Drains the process, in this order:
 *
 *     readiness fails ── shutdownDelay ──▶ no new sockets ──▶ GOAWAY, two steps ──▶ plain requests finish
 *                                                     └──▶ watches end between events, in the first half of `timeout`
 *                                                     └──▶ exec, port-forward, logs -f: until they end themselves
 *     all over, or timeout ──▶ what is left is cut
 *
 * If the service manager keeps the port open and starts the next process only after this one has ended, clients that
 * connect after this process has stopped accepting wait until the next one serves. To keep that wait short, the process
 * goes on serving new clients while exec, port-forward and logs -f end, and stops accepting only near the end:
 *
 *     readiness fails ── shutdownDelay, then until no long request is left or `timeout` is near ──▶ no new sockets, …
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
  /**
   * Returns the number of bytes buffered for slow clients, including the bytes of responses that backends have already
   * sent completely.
   */
  readonly queuedBytes: () => number;
  readonly upgrades: () => number;
  /** Returns the number of clients that have connected, but have neither a session nor a tunnel yet. */
  readonly opening: () => number;
  /** Passes this process's listening sockets to another process, if one takes them. */
  readonly passListeners: () => Promise<void>;
  readonly close: () => void;
  readonly goAway: () => void;
  readonly cut: () => void;
  /**
   * The worker processes. They serve this process's clients, and drain at the same time as this process; default: none.
   */
  readonly workers?: DrainedWorkers | undefined;
};

export type DrainedWorkers = {
  /** Number of workers that have not ended. */
  readonly alive: number;
  readonly requests: number;
  drain(times: DrainTimes): unknown;
};

export type DrainTimes = {
  readonly shutdownDelayMs: number;
  readonly timeoutMs: number;
  /**
   * True if the service manager keeps the port open: clients that connect after `close` wait for the next process,
   * which starts when this one has ended.
   */
  readonly isPortKept?: boolean;
};

const endCheckMs = 50;

/**
 * Maximum ms for the handshakes that are under way when the port closes. A client that sends nothing gets no more time.
 */
export const openingMs = 1000;

/**
 * Maximum ms of the drain's last part if the service manager keeps the port. In this part, watches end and other open
 * requests finish, while new clients wait for the next process. Nearly all requests finish sooner. A client with a
 * timeout of 5 s, such as a leader that renews its Lease, still gets its response.
 */
export const keptPortMs = 3000;

/**
 * Milliseconds at the start of the drain's last part (`keptPortMs`) in which all watches end. In this time, a client
 * that has just connected can still send a request.
 */
export const keptPortWatchesMs = 250;

/** Milliseconds for which the drain waits, beyond its timeout, until the workers have ended by themselves. */
const workerEndMs = 2000;

/**
 * Resolves when no request and no tunnel is left. Those that remain after `times.timeoutMs`, or at a second signal
 * (`hurry`), are ended.
 */
export async function drain(parts: DrainParts, times: DrainTimes, hurry: AbortSignal): Promise<void> {
  const { clock, journal, exchanges } = parts;
  const { isPortKept, lastMs, watchesMs } = phaseOf(times);
  journal.write({ kind: "drain.started" });
  await pause(clock, times.shutdownDelayMs, hurry);
  if (isPortKept) await untilLongRequestsEnd(parts, times.timeoutMs - lastMs, hurry);
  await parts.passListeners();
  parts.close();
  parts.goAway();
  const { workers } = parts;
  workers?.drain({ ...times, shutdownDelayMs: 0 });
  const began = clock.now();
  const deadline = began + lastMs + (workers === undefined ? 0 : workerEndMs);
  const drainSchedule = new WatchDrainSchedule(exchanges, Math.ceil(watchesMs / endCheckMs));
  const isBusy = async (): Promise<boolean> => {
    if (parts.opening() > 0 && clock.now() < began + openingMs) return true;
    if (!isPortKept)
      return exchanges.size + parts.upgrades() + parts.queuedBytes() + (workers?.alive ?? 0) > 0;
    const isStarting = clock.now() < began + watchesMs;
    return isStarting || parts.queuedBytes() > 0 || (await hasOpen(parts, (one) => !isLong(one)));
  };
  // oxlint-disable-next-line no-await-in-loop
  while (clock.now() < deadline && !hurry.aborted && (await isBusy())) {
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
 * Returns two durations in ms. `lastMs`: the drain's last part, in which new clients are not accepted. `watchesMs`: the
 * beginning of this part, in which watches end.
 */
function phaseOf({ isPortKept = false, timeoutMs }: DrainTimes): {
  readonly isPortKept: boolean;
  readonly lastMs: number;
  readonly watchesMs: number;
} {
  if (!isPortKept) return { isPortKept, lastMs: timeoutMs, watchesMs: timeoutMs / 2 };
  const lastMs = Math.min(keptPortMs, timeoutMs);
  return { isPortKept, lastMs, watchesMs: Math.min(keptPortWatchesMs, lastMs) };
}

/** Resolves when no exec, port-forward or logs -f is open, or after `mostMs`. */
async function untilLongRequestsEnd(parts: DrainParts, mostMs: number, hurry: AbortSignal): Promise<void> {
  const { clock } = parts;
  const deadline = clock.now() + mostMs;
  while (clock.now() < deadline && !hurry.aborted) {
    // The checks run one after another, with a pause between them.
    // oxlint-disable-next-line no-await-in-loop
    if (parts.upgrades() === 0 && !(await hasOpen(parts, isLong))) return;
    // oxlint-disable-next-line no-await-in-loop
    await pause(clock, endCheckMs, hurry);
  }
}

function isLong({ context }: Exchange): boolean {
  return context.kind === "long-running";
}

async function hasOpen(
  { clock, exchanges }: DrainParts,
  isMeant: (one: Exchange) => boolean,
): Promise<boolean> {
  let isFound = false;
  await walkInSlices(clock, exchanges.live, (one) => {
    isFound ||= isMeant(one);
    return isFound ? enough : undefined;
  });
  return isFound;
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
      // The proxy ends a watch only between two events. It cannot do so while the watch has no response, and while it
      // cannot decode the response. A later check tries again.
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
