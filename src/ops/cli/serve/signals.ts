/** Ends a serving process. The first signal or an uncaught exception drains it; the second signal ends it at once. */

import { wallClock } from "../../../base/clock.ts";
import { failureFrom } from "../../../base/failure.ts";
import { faultyPart, guarded } from "../../../events/guarded-clock.ts";
import { type EntryOf, Journal } from "../../../events/journal.ts";
import type { Surroundings } from "../../../main.ts";
import { Log, type LogOptions } from "../../admin/events/log.ts";
import type { Config } from "../../config/config.ts";

export type Signals = {
  /** Resolves with false at the first signal. If a successor takes over instead, `Handover.done` resolves with true. */
  readonly first: Promise<false>;
  /** Aborts at the first signal. */
  readonly drain: AbortSignal;
  /** Aborts at the second signal. */
  readonly hurry: AbortSignal;
  /** Acts like a first signal. Has no effect if a signal has already come. */
  readonly raise: () => void;
};

/** Handles SIGTERM and SIGINT from now on. */
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

/** Returns what a serving command needs: a journal that is logged, and handlers of signals and uncaught exceptions. */
export function beginServing(options: Omit<LogOptions, "clock">): {
  readonly signals: Signals;
  readonly parts: Pick<Required<Surroundings>, "journal" | "droppedLogLines" | "configureLog">;
} {
  const journal = new Journal(wallClock);
  const log = new Log(journal, { ...options, clock: guarded(wallClock, journal, "admin") });
  const signals = listenForSignals();
  containFaults(journal, signals.raise);
  const parts = {
    journal,
    droppedLogLines: () => log.dropped,
    configureLog: (logging: Config["logging"]) => log.configure(logging),
  };
  return { signals, parts };
}

/**
 * Journals an exception that nothing caught. One of the control side costs only what it was about to do, and so
 * does a rejected promise: the data path forwards bytes without promises. After any other exception, the data path's
 * state is unknown, so the process drains (D10).
 */
export function containFaults(journal: Journal, drain: () => void): void {
  const contain = (reason: unknown, scope: EntryOf<"internal.error">["scope"]): void =>
    journal.write({ kind: "internal.error", scope, message: failureFrom(reason, "proxy").message });
  process.on("uncaughtException", (reason: unknown) => {
    const scope = faultyPart() ?? "process";
    contain(reason, scope);
    if (scope !== "process") return;
    process.exitCode = 1;
    drain();
  });
  process.on("unhandledRejection", (reason: unknown) => contain(reason, faultyPart() ?? "promise"));
}

/** Returns `code`, and ends the process 100 ms later, because the last lines of the log may still be in a pipe. */
export function exitSoon(code: number): number {
  wallClock.after(100, () => process.exit(code));
  return code;
}

/** Returns the exit code: 1 after an uncaught exception, otherwise 0. */
export function exitCode(): number {
  return process.exitCode === 1 ? 1 : 0;
}
