import type { Clock } from "../base/clock.ts";
import { failureFrom } from "../base/failure.ts";
import type { Journal } from "./journal.ts";

/**
 * Returns a clock that catches and journals exceptions of its callbacks, so that no exception ends the process (D10).
 */
export function guarded(clock: Clock, journal: Journal): Clock {
  const guard = (run: () => void) => () => {
    try {
      run();
    } catch (error) {
      const { message } = failureFrom(error, "proxy");
      journal.write({ kind: "internal.error", scope: "timer", message });
    }
  };
  return {
    now: () => clock.now(),
    wall: () => clock.wall(),
    after: (ms, run) => clock.after(ms, guard(run)),
    soon: (run) => clock.soon(guard(run)),
  };
}
