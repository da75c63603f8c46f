/** Formats clock readings for operators. */
import { type Clock, dateOf } from "../../base/clock.ts";

export type Times = {
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly wall: () => number;
  /** RFC 3339 in UTC, with milliseconds. */
  readonly timeOf: (at: number) => string;
  /** Age in whole ms; null if it has not happened (-1). */
  readonly ageOf: (at: number) => number | null;
};

export function timesOf(clock: Clock): Times {
  return {
    now: () => clock.now(),
    wall: () => clock.wall(),
    timeOf: (at) => dateOf(clock.wall() - (clock.now() - at)).toISOString(),
    ageOf: (at) => (at < 0 ? null : Math.round(clock.now() - at)),
  };
}
