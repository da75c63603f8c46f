/** How a serving process ends: the first signal drains it, the second ends it now, an uncaught exception drains it. */
import { wallClock } from "../../base/clock.ts";
import { failureFrom } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";

export type Signals = {
  /** Resolves with the first signal: false, because no successor serves on. */
  readonly first: Promise<false>;
  /** Aborts with the second signal. */
  readonly hurry: AbortSignal;
  /** Has the effect of a first signal; a second call changes nothing. */
  readonly raise: () => void;
};

/** Handles SIGTERM and SIGINT, from this call on. */
export function listenForSignals(): Signals {
  const hurry = new AbortController();
  const first = Promise.withResolvers<false>();
  let count = 0;
  const heard = (): void => {
    count += 1;
    if (count > 1) hurry.abort();
    first.resolve(false);
  };
  process.on("SIGTERM", heard);
  process.on("SIGINT", heard);
  return { first: first.promise, hurry: hurry.signal, raise: () => first.resolve(false) };
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

/** Exits after 100 ms: all work has been cut by now, but lines of the log may still be in a pipe. */
export function exitSoon(code: number): void {
  wallClock.after(100, () => process.exit(code));
}

/** Returns 1 if a fault was contained. */
export function exitCode(): number {
  return process.exitCode === 1 ? 1 : 0;
}
