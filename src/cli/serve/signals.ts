/** How a serving process ends: the first signal drains it, the second ends it now, a fault that nobody caught drains it. */
import { wallClock } from "../../base/clock.ts";
import { failureFrom } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";

export type Signals = {
  /** Resolves with the first signal: false, nobody else serves on. */
  readonly first: Promise<false>;
  /** Aborts with the second. */
  readonly hurry: AbortSignal;
  /** Does what a first signal does; a second call changes nothing. */
  readonly raise: () => void;
};

/** SIGTERM and SIGINT, from this call on. */
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
 * The outermost ring (D10): a fault that no stream and no session caught leaves the process in a state that nobody
 * knows. It is journaled, new clients are sent elsewhere, and what is under way is let finish.
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

/** What still holds the loop has been cut, but lines of the log may be under way in a pipe. */
export function exitSoon(code: number): void {
  wallClock.after(100, () => process.exit(code));
}

/** 1 when a fault was contained on the way. */
export function exitCode(): number {
  return process.exitCode === 1 ? 1 : 0;
}
