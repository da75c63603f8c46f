import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Rtt } from "../../src/health/rtt.ts";

const test = suite("health/rtt");
const floor = { suspectAfterMs: 500, deadAfterMs: 2000 };

/** Adds four PINGs a second on each upstream connection for this many seconds. */
function play(
  rtt: Rtt,
  from: number,
  seconds: number,
  connections: number,
  ms: (beat: number) => number,
): void {
  for (let beat = 0; beat < seconds * 4; beat += 1) {
    for (let connection = 0; connection < connections; connection += 1) rtt.add(ms(beat));
    rtt.fade(from + beat * 250);
  }
}

test("a backend next door keeps the floors, and so does one that was never heard", () => {
  const rtt = new Rtt();
  assert.equal(rtt.deadlines(floor), floor);
  play(rtt, 0, 60, 2, () => 0.4);
  assert.equal(rtt.deadlines(floor), floor);
});

test("a quantile is never below the truth and at most a quarter above it", () => {
  for (const share of [0.5, 0.9, 0.99]) {
    const rtt = new Rtt();
    for (let ms = 1; ms <= 1000; ms += 1) rtt.add(ms);
    const told = rtt.quantile(share);
    assert.ok(told >= share * 1000 && told <= share * 1000 * 1.26, `${share}: ${told}`);
  }
});

test("a far backend is given eight times its p99, and twice that until it is dead (F10)", () => {
  const rtt = new Rtt();
  play(rtt, 0, 60, 2, (beat) => 300 + (beat % 5) * 100);
  const { suspectAfterMs, deadAfterMs } = rtt.deadlines(floor);
  assert.ok(suspectAfterMs >= 8 * 700 && suspectAfterMs <= 8 * 875, String(suspectAfterMs));
  assert.is(deadAfterMs, 2 * suspectAfterMs);
});

test("holes do not blind: prompt answers among late ones bound the deadline", () => {
  for (const connections of [2, 600]) {
    const rtt = new Rtt();
    play(rtt, 0, 60, connections, (beat) => (beat % 8 === 0 ? 1500 : 1));
    assert.equal(rtt.deadlines(floor), floor);
  }
});

test("what was long ago is forgotten", () => {
  const rtt = new Rtt();
  play(rtt, 0, 60, 2, () => 600);
  play(rtt, 60_000, 600, 2, () => 1);
  assert.equal(rtt.deadlines(floor), floor);
});

test.run();
