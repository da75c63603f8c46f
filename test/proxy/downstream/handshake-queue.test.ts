import { suite } from "uvu";
import * as assert from "uvu/assert";
import { HandshakeQueue, handshakesPerTurn } from "../../../src/proxy/downstream/handshake-queue.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("proxy/downstream/handshake-queue");

/** A clock whose `soon` callbacks run one at a time, one for each call of `turn`. */
function stepped() {
  const due: (() => void)[] = [];
  const clock = { ...manualClock(), soon: (run: () => void) => void due.push(run) };
  const turn = (): void => {
    for (const run of due.splice(0)) run();
  };
  return { queue: new HandshakeQueue(clock), turn };
}

test("a few begin at once, and as many more in each turn of the loop (A51)", () => {
  const { queue, turn } = stepped();
  let begun = 0;
  for (let count = 0; count < 100; count += 1) queue.enter({ user: "a", begin: () => void (begun += 1) });
  for (let turns = 1; turns <= 25; turns += 1) {
    assert.is(begun, turns * handshakesPerTurn);
    turn();
  }
  assert.is(queue.size, 0);
  turn();
  queue.enter({ user: "a", begin: () => void (begun += 1) });
  assert.is(begun, 101);
});

test("sources take turns: a single client waits for no flood (A51's honest twin)", () => {
  const { queue, turn } = stepped();
  let isServed = false;
  for (let count = 0; count < 1000; count += 1) queue.enter({ user: "flood", begin() {} });
  queue.enter({ user: "alone", begin: () => void (isServed = true) });
  turn();
  assert.ok(isServed);
});

test("a client that goes while waiting is forgotten, and costs no turn", () => {
  const { queue, turn } = stepped();
  const begun: number[] = [];
  const all = Array.from({ length: 20 }, (_, at) => ({ user: "a", begin: (): void => void begun.push(at) }));
  for (const one of all) queue.enter(one);
  for (const one of all) queue.leave(one);
  assert.is(queue.size, 0);
  turn();
  turn();
  queue.enter({ user: "a", begin: () => void begun.push(20) });
  assert.equal(begun, [0, 1, 2, 3, 20]);
});

test.run();
