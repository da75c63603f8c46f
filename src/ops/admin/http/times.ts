/** Formats clock readings for operators. A clock reading is a value of `Clock.now()`, in ms. */
import { type Clock, dateOf } from "../../../base/clock.ts";

export type Times = {
  readonly now: () => number;
  /** Returns the current time in milliseconds since 1970. */
  readonly wall: () => number;
  /** Returns the date and time of a clock reading: RFC 3339 in UTC, with milliseconds. */
  readonly timeOf: (at: number) => string;
  /** Returns the whole milliseconds since a clock reading; null for the reading -1, which means never. */
  readonly ageOf: (at: number) => number | null;
};

/** Formatted times are corrected once the wall clock has moved by this many milliseconds against `Clock.now()`. */
const driftMs = 1000;

/**
 * Returns functions that format clock readings. Equal readings are formatted as equal times, unless the wall clock has
 * been set or has drifted in between.
 */
export function timesOf(clock: Clock): Times {
  let startedAt = clock.wall() - clock.now();
  const wallOf = (at: number): number => {
    const next = clock.wall() - clock.now();
    if (Math.abs(next - startedAt) >= driftMs) startedAt = next;
    return startedAt + at;
  };
  return {
    now: () => clock.now(),
    wall: () => clock.wall(),
    timeOf: (at) => dateOf(wallOf(at)).toISOString(),
    ageOf: (at) => (at < 0 ? null : Math.round(clock.now() - at)),
  };
}
