/**
 * A graceful stop. The order:
 *
 *     readiness fails ── readyDelay ──▶ no new sockets ──▶ GOAWAY, two steps ──▶ plain requests finish
 *                                                     └──▶ watches end one by one, between events, over half the time
 *                                                     └──▶ exec, port-forward, logs -f: until they end themselves
 *     all over, or timeout ──▶ what is left is cut
 */
import type { Clock } from "../clock.ts";
import type { Journal } from "../journal.ts";
import type { Exchanges } from "./exchanges.ts";
import type { Exchange } from "./relay.ts";

export type DrainParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly exchanges: Exchanges;
  /** What waits for slow readers: the end of an answer may be in there when its exchange is over. */
  readonly queuedBytes: () => number;
  /** Spliced upgrades that are still open. */
  readonly upgrades: () => number;
  readonly close: () => void;
  readonly goAway: () => void;
  readonly cut: () => void;
};

export type DrainTimes = { readonly readyDelayMs: number; readonly timeoutMs: number };

/** How often it looks whether all is over. */
const lookMs = 50;

/** Resolves when nothing is left; `hurry` (a second signal) cuts at once. */
export async function drain(parts: DrainParts, times: DrainTimes, hurry: AbortSignal): Promise<void> {
  const { clock, journal, exchanges } = parts;
  journal.write({ kind: "drain.started" });
  await pause(clock, times.readyDelayMs, hurry);
  parts.close();
  parts.goAway();
  const deadline = clock.now() + times.timeoutMs;
  const stops = endWatches(parts, times.timeoutMs / 2);
  const isBusy = (): boolean => exchanges.size + parts.upgrades() + parts.queuedBytes() > 0;
  while (isBusy() && clock.now() < deadline && !hurry.aborted) await pause(clock, lookMs, hurry);
  for (const stop of stops) stop();
  const cut = exchanges.size + parts.upgrades();
  for (const exchange of Array.from(exchanges.live)) exchange.cut();
  parts.cut();
  journal.write({ kind: "drain.ended", cut });
}

/** Spread over `overMs`, so that their clients do not come back all at once elsewhere (F17). */
function endWatches({ clock, exchanges }: DrainParts, overMs: number): (() => void)[] {
  const watches: Exchange[] = Array.from(exchanges.live).filter(
    (exchange) => exchange.order.kind === "watch",
  );
  return watches.map((watch, index) =>
    clock.after((overMs * index) / watches.length, () => watch.endWatch()),
  );
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
