/** How a serving process ends: the first signal drains it, the second ends it now, an uncaught exception drains it. */
import { Log, type LogOptions } from "../../admin/events/log.ts";
import { wallClock } from "../../base/clock.ts";
import { failureFrom } from "../../base/failure.ts";
import { Journal } from "../../events/journal.ts";

export type Signals = {
  /** Resolves with the first signal: false, because no successor serves on. */
  readonly first: Promise<false>;
  /** Aborts with the first signal. */
  readonly drain: AbortSignal;
  /** Aborts with the second signal. */
  readonly hurry: AbortSignal;
  /** Has the effect of a first signal; a second call changes nothing. */
  readonly raise: () => void;
};

/** Handles SIGTERM and SIGINT, from this call on. */
export function listenForSignals(): Signals {
  const [drain, hurry] = [new AbortController(), new AbortController()];
  let count = 0;
  const onSignal = (): void => {
    count += 1;
    if (count > 1) hurry.abort();
    drain.abort();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  const first = new Promise<false>((resolve) => {
    drain.signal.addEventListener("abort", () => resolve(false));
  });
  return { first, drain: drain.signal, hurry: hurry.signal, raise: () => drain.abort() };
}

/** The common start of the serving commands: a journal whose entries are logged, and handlers of signals and of uncaught exceptions. */
export function beginServing(options: Omit<LogOptions, "clock">): {
  readonly signals: Signals;
  /** For `startWatchkeeper`. */
  readonly parts: { readonly journal: Journal; readonly droppedLogLines: () => number };
} {
  const journal = new Journal(wallClock);
  const log = new Log(journal, { ...options, clock: wallClock });
  const signals = listenForSignals();
  containFaults(journal, signals.raise);
  return { signals, parts: { journal, droppedLogLines: () => log.dropped } };
}

/**
 * The last resort: after an exception that no stream and no session caught, the state of the process is unknown. The fault
 * is journaled and the process drains: readiness fails, listeners close, requests in flight finish (D10).
 */
export function containFaults(journal: Journal, drain: () => void): void {
  const contain = (reason: unknown): void => {
    journal.write({
      kind: "internal.error",
      scope: "process",
      message: failureFrom(reason, "proxy").message,
    });
    process.exitCode = 1;
    drain();
  };
  process.on("uncaughtException", contain);
  process.on("unhandledRejection", contain);
}

/** Exits after 100 ms: all work has been cut by now, but lines of the log may still be in a pipe. Returns the code. */
export function exitSoon(code: number): number {
  wallClock.after(100, () => process.exit(code));
  return code;
}

/** Returns 1 if a fault was contained. */
export function exitCode(): number {
  return process.exitCode === 1 ? 1 : 0;
}
