import type { Clock } from "../../src/base/clock.ts";

export type ManualClock = Clock & {
  /** Moves time on; due callbacks run in order of their time, each turn's `soon` before the next. */
  advance(ms: number): void;
  /** Runs what `soon` was given, and what that gave in turn. */
  turn(): void;
  /** Time passes while nothing runs, as when the loop is blocked; what was due runs afterwards, late. */
  stall(ms: number): void;
  /** Moves the wall clock alone, forwards or back, as NTP or an operator does. */
  setWall(ms: number): void;
};

/** A clock that only moves when told. */
export function manualClock(): ManualClock {
  let now = 0;
  let wallAtStart = 1_800_000_000_000;
  let due: { readonly at: number; readonly run: () => void }[] = [];
  let next: (() => void)[] = [];
  const turn = (): void => {
    while (next.length > 0) {
      const batch = next;
      next = [];
      for (const run of batch) run();
    }
  };
  return {
    now: () => now,
    wall: () => wallAtStart + now,
    after(ms, run) {
      const entry = { at: now + ms, run };
      due.push(entry);
      return () => {
        due = due.filter((other) => other !== entry);
      };
    },
    soon(run) {
      next.push(run);
    },
    turn,
    stall(ms) {
      now += ms;
    },
    setWall(ms) {
      wallAtStart += ms;
    },
    advance(ms) {
      const until = now + ms;
      turn();
      for (;;) {
        const [first] = due.filter((entry) => entry.at <= until).toSorted((a, b) => a.at - b.at);
        if (first === undefined) break;
        due = due.filter((entry) => entry !== first);
        now = Math.max(now, first.at);
        first.run();
        turn();
      }
      now = until;
    },
  };
}

/** The same, which counts the loop turns that `soon` began. */
export function countedClock(): ManualClock & { readonly turns: number } {
  const clock = manualClock();
  const counted = {
    ...clock,
    turns: 0,
    soon(run: () => void): void {
      clock.soon(() => {
        counted.turns += 1;
        run();
      });
    },
  };
  return counted;
}
