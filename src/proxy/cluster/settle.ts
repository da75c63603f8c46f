/** Before anybody is let in: has every backend been judged once, and is one of them ready? */
import type { Clock } from "../../base/clock.ts";
import type { BackendView } from "../../health/backend.ts";

/** How often it looks. */
const lookMs = 20;

/** Resolves when that is so, or with whether one is ready after `withinMs`. */
export function settle(
  views: () => readonly BackendView[],
  clock: Clock,
  withinMs: number,
): Promise<boolean> {
  const until = clock.now() + withinMs;
  return new Promise((resolve) => {
    const look = (): void => {
      const isAnyReady = views().some(({ state }) => state === "ready");
      const isAnyUnknown = views().some(({ state }) => state === "unknown");
      if ((isAnyReady && !isAnyUnknown) || clock.now() >= until) resolve(isAnyReady);
      else clock.after(lookMs, look);
    };
    look();
  });
}
