import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { PendingQueue } from "../../../src/proxy/request/pending-queue.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("proxy/hold");

function holding() {
  const clock = manualClock();
  return { clock, hold: new PendingQueue(clock), heard: [] as string[] };
}

test("who is held goes when a backend is back, in order, or is refused when its time is over", () => {
  const { clock, hold, heard } = holding();
  const until = hold.until;
  for (const name of ["one", "two"])
    hold.wait(
      until,
      () => heard.push(name),
      () => heard.push(`${name} refused`),
    );
  clock.advance(limits.holdMs - 1);
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

test("a stall of ours is not counted: a backend that came back meanwhile takes those who are held (F11)", () => {
  const { clock, hold, heard } = holding();
  hold.wait(
    hold.until,
    () => heard.push("placed"),
    () => heard.push("refused"),
  );
  clock.advance(100);
  clock.stall(2 * limits.holdMs);
  clock.advance(10);
  assert.equal(heard, []);
  hold.release();
  clock.turn();
  assert.equal(heard, ["placed"]);
});

test("who leaves is neither placed nor refused", () => {
  const { clock, hold, heard } = holding();
  const leave = hold.wait(
    hold.until,
    () => heard.push("placed"),
    () => heard.push("refused"),
  );
  leave?.();
  hold.release();
  clock.advance(limits.holdMs);
  assert.equal([heard, hold.size], [[], 0]);
});

test("nobody waits whose time is over, nor beyond the limit", () => {
  const { clock, hold } = holding();
  const until = hold.until;
  clock.advance(limits.holdMs);
  const nothing = (): void => {};
  assert.is(hold.wait(until, nothing, nothing), undefined);
  for (let index = 0; index < limits.waitingExchanges; index += 1) hold.wait(hold.until, nothing, nothing);
  assert.is(hold.wait(hold.until, nothing, nothing), undefined);
  assert.is(hold.size, limits.waitingExchanges);
});

test.run();
