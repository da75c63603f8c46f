import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { sliceLimits } from "../../../src/base/slices.ts";
import { StallAwareClock } from "../../../src/health/stall-aware-clock.ts";
import { requestLimits } from "../../../src/proxy/request/limits.ts";
import { PendingQueue } from "../../../src/proxy/request/pending-queue.ts";
import { manualClock } from "../../support/clock.ts";
import { PlayedPath } from "../../support/path.ts";

const test = suite("proxy/request/pending-queue");

function holding() {
  const clock = manualClock();
  const patience = new StallAwareClock(clock);
  patience.start();
  return { clock, hold: new PendingQueue(patience), heard: [] as string[] };
}

test("a pending request goes when a backend is back, in order, or is refused when its time is over", () => {
  const { clock, hold, heard } = holding();
  const until = hold.until;
  for (const name of ["one", "two"])
    hold.wait(
      until,
      () => heard.push(name),
      () => heard.push(`${name} refused`),
    );
  clock.advance(requestLimits.pendingMs - 1);
  hold.release();
  clock.turn();
  assert.equal(heard, ["one", "two"]);
  hold.wait(
    until,
    () => heard.push("three"),
    () => heard.push("three refused"),
  );
  clock.advance(1);
  hold.release();
  clock.turn();
  assert.equal(heard.slice(2), ["three refused"]);
  assert.is(hold.size, 0);
});

test("a stall of the proxy is not counted: a backend that came back meanwhile takes the pending requests (F11)", () => {
  const { clock, hold, heard } = holding();
  hold.wait(
    hold.until,
    () => heard.push("placed"),
    () => heard.push("refused"),
  );
  clock.advance(100);
  clock.stall(2 * requestLimits.pendingMs);
  clock.advance(10);
  assert.equal(heard, []);
  hold.release();
  clock.turn();
  assert.equal(heard, ["placed"]);
});

test("a stall of the proxy is not counted either for a request that was released in vain, and is pending again (F11)", () => {
  const { clock, hold, heard } = holding();
  const { until } = hold;
  const wait = (): void => void hold.wait(until, wait, () => heard.push("refused"));
  wait();
  clock.advance(100);
  clock.stall(2 * requestLimits.pendingMs);
  clock.advance(10);
  hold.release();
  clock.turn();
  assert.equal([heard, hold.size], [[], 1]);
  clock.advance(requestLimits.pendingMs - 1000);
  assert.equal(heard, []);
  clock.advance(2000);
  assert.equal(heard, ["refused"]);
});

test("a stall of the proxy refuses no request that is released in vain after it (F11)", () => {
  const path = new PlayedPath(["a"], { isProbed: true, down: ["a"] });
  path.clock.advance(5000);
  const ear = path.client().ask("GET", "/api");
  path.clock.advance(100);
  assert.is(path.pending.size, 1);
  path.clock.stall(2 * requestLimits.pendingMs);
  path.pending.release();
  path.clock.turn();
  assert.equal([ear.status, path.pending.size], ["", 1]);
  path.backend("a").isDown = false;
  path.clock.advance(2000);
  assert.is(path.backend("a").asked.length, 1);
});

test("a herd that waited is placed in order, a slice in each loop turn; one that leaves meanwhile is not, and what waits again waits", () => {
  const turns: (() => void)[] = [];
  const clock = { ...manualClock(), soon: (run: () => void) => void turns.push(run) };
  const hold = new PendingQueue(clock);
  const placed: number[] = [];
  const leaves = Array.from({ length: limits.waitingExchanges }, (_, at) =>
    hold.wait(
      hold.until,
      () => {
        placed.push(at);
        if (at === 0)
          hold.wait(
            hold.until,
            () => placed.push(-1),
            () => {},
          );
      },
      () => {},
    ),
  );
  hold.release();
  assert.is(placed.length, 0, "the caller that reported the verdict has not returned yet");
  leaves.at(-1)?.();
  const counts = [0];
  for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) {
    turn();
    counts.push(placed.length);
  }
  const steps = counts.slice(1).map((count, index) => count - (counts[index] ?? 0));
  assert.ok(Math.max(...steps) <= sliceLimits.sliceEntries, String(Math.max(...steps)));
  assert.equal([placed.length, placed[0], placed.at(-1)], [9999, 0, 9998]);
  assert.is(hold.size, 1);
});

test("a request that leaves is neither placed nor refused", () => {
  const { clock, hold, heard } = holding();
  const leave = hold.wait(
    hold.until,
    () => heard.push("placed"),
    () => heard.push("refused"),
  );
  leave();
  hold.release();
  clock.advance(requestLimits.pendingMs);
  assert.equal([heard, hold.size], [[], 0]);
});

test("no request waits whose time is over, nor beyond the limit", () => {
  const { clock, hold, heard } = holding();
  const until = hold.until;
  clock.advance(requestLimits.pendingMs);
  const wait = (name: string, at = hold.until): (() => void) =>
    hold.wait(
      at,
      () => {},
      () => heard.push(name),
    );
  wait("late", until);
  for (let index = 0; index < limits.waitingExchanges; index += 1) wait("none");
  assert.equal(heard, ["late"]);
  wait("beyond");
  assert.equal(heard, ["late", "beyond"]);
  assert.is(hold.size, limits.waitingExchanges);
});

test.run();
