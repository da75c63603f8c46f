import type { Clock } from "../../src/base/clock.ts";

export type ManualClock = Clock & {
  /**
   * Moves time forward. Due callbacks run in the order of their times. After each of them, all callbacks of `soon` run.
   */
  advance(ms: number): void;
  /** Runs all callbacks of `soon`, including those that these callbacks add. */
  turn(): void;
  /**
   * Moves time forward without running anything, as when the event loop is blocked. Due callbacks run late, at the next
   * advance.
   */
  stall(ms: number): void;
  /** Moves only the wall clock, forwards or backwards, as NTP or an operator does. */
  setWall(ms: number): void;
};

/** Returns a clock that moves only when the test calls its methods. */
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

/** Returns a manual clock that also counts the `soon` callbacks it has run. */
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
