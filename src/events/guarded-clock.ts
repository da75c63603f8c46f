/** A clock that contains exceptions in its callbacks: only the callback itself is lost, never the process (D10). */
import type { Clock } from "../base/clock.ts";
import { failureFrom } from "../base/failure.ts";
import type { Journal } from "./journal.ts";

/** Returns the same clock; exceptions in its callbacks are journaled. */
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
