/**
 * Contains exceptions, so that none ends the process (D10). The control side is everything but the data path: it reads
 * files, asks other servers, and answers operators. Its code runs in a *part*. Whatever this code starts belongs to the
 * part, too: timers, promises, and handlers of sockets and processes. An exception in any of it is a problem of this
 * part alone.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Clock } from "../base/clock.ts";
import { failureFrom } from "../base/failure.ts";
import type { Journal } from "./journal.ts";
import type { ControlPart } from "./proxy-event.ts";

const parts = new AsyncLocalStorage<ControlPart | undefined>();

/** Runs code of the control side. The caller gets exceptions that `run` itself throws, as from any function. */
export function inPart<T>(part: ControlPart, run: () => T): T {
  return parts.run(part, run);
}

/** Runs code of the data path that the control side calls. What it starts belongs to no part. */
export function onDataPath<T>(run: () => T): T {
  return parts.exit(run);
}

/**
 * Returns the part whose exception nothing caught; undefined: it may be the data path's. Only for a handler of uncaught
 * exceptions.
 */
export function faultyPart(): ControlPart | undefined {
  const part = parts.getStore();
  // After an exception in a microtask, Node 24 would run later callbacks of other code in this part.
  parts.enterWith(undefined);
  return part;
}

/**
 * Returns a clock that catches and journals exceptions of its callbacks. `part`: the callbacks belong to this part;
 * undefined: to the data path.
 */
export function guarded(clock: Clock, journal: Journal, part?: ControlPart): Clock {
  const guard = (run: () => void) => () => {
    try {
      if (part === undefined) run();
      else parts.run(part, run);
    } catch (error) {
      const { message } = failureFrom(error, "proxy");
      journal.write({ kind: "internal.error", scope: part ?? "timer", message });
    }
  };
  return {
    now: () => clock.now(),
    wall: () => clock.wall(),
    after: (ms, run) => clock.after(ms, guard(run)),
    soon: (run) => clock.soon(guard(run)),
  };
}
