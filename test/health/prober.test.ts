import { suite } from "uvu";
import * as assert from "uvu/assert";
import { healthLimits } from "../../src/health/limits.ts";
import { Prober } from "../../src/health/prober.ts";
import { manualClock } from "../support/clock.ts";
import { answerAll, type Played, play, ready, silent } from "../support/played-prober.ts";

const test = suite("health/prober");

test("in calm times it asks once an interval, one at a time", () => {
  const played = play(ready);
  for (let round = 0; round < 4; round += 1) {
    played.clock.advance(1000);
    assert.is(played.running.length, 1);
    answerAll(played);
  }
  assert.equal(played.begun, [500, 1500, 2500, 3500]);
  assert.equal(
    played.learnt.slice(0, 2).map(({ kind }) => kind),
    ["fresh", "readyz"],
  );
  assert.is(played.prober.counts.answers, 4);
});

test("a probe that hangs holds up the next one while upstream connections answer, and is given up after its time", () => {
  const played = play(ready);
  played.clock.advance(500);
  played.running[0]?.ear.dialed("answer", "");
  played.clock.advance(2900);
  assert.is(played.begun.length, 1);
  played.clock.advance(200);
  const last = played.learnt.at(-1);
  assert.ok(last?.kind === "readyz" && last.readiness === "hanging");
  assert.is(played.prober.counts.failures, 1);
});

test("while upstream connections are silent it asks every 250 ms on a socket of its own, and not more than eight at once", () => {
  const played = play(silent);
  played.clock.advance(500 + 900);
  assert.equal(played.begun, [500, 750, 1000, 1250]);
  const met = (): string[] => played.learnt.map((one) => (one.kind === "fresh" ? one.met : ""));
  assert.equal(met(), []);
  played.clock.advance(150);
  assert.equal(met(), ["silence"], "the first has waited its second");
  for (const { ear } of Array.from(played.running)) ear.dialed("answer", "");
  played.clock.advance(5000);
  assert.ok(played.running.length <= healthLimits.probesAtOnce);
});

test("a backend without connections that met silence is asked as often as one whose connections are silent for long", () => {
  for (const fresh of ["silence", "refusal"] as const) {
    const played = play({ ...ready, state: "suspect", connections: "none", fresh });
    played.clock.advance(20_000);
    assert.ok(played.begun.length >= 35, `${played.begun.length} probes in 20 s after a ${fresh}`);
  }
});

test("a probe that gets no answer is overruled by one that was answered since: only what was asked later tells", () => {
  const played = play(silent);
  const readings = (): string[] =>
    played.learnt.flatMap((one) => (one.kind === "readyz" ? [one.readiness] : []));
  played.clock.advance(800);
  const [first, second] = played.running;
  for (const run of [first, second]) run?.ear.dialed("answer", "");
  played.clock.advance(100);
  second?.ear.answered("ready", "");
  played.held = ready;
  played.clock.advance(3000);
  assert.equal(readings(), ["ready"], "the first one has waited for 3 s");
  played.clock.advance(1000);
  const [third] = played.running;
  third?.ear.dialed("answer", "");
  played.clock.advance(3000);
  assert.equal(readings(), ["ready", "hanging"]);
});

test("when something is wrong it asks now, and when it just has, not again", () => {
  const played = play(ready);
  played.clock.advance(600);
  answerAll(played);
  for (let count = 0; count < 100; count += 1) {
    played.prober.probeNow();
    answerAll(played);
  }
  assert.equal(played.begun, [500], "it has asked a tenth of a second ago");
  played.clock.advance(150);
  for (let count = 0; count < 100; count += 1) {
    played.prober.probeNow();
    answerAll(played);
  }
  assert.equal(played.begun, [500, 750]);
});

test("a backend that stays away is asked half as often, and so it is seen within a second of its return", () => {
  const played = play({ ...silent, connections: "lost", state: "dead" });
  played.clock.advance(healthLimits.urgentProbesMs);
  const before = played.begun.length;
  for (let second = 0; second < 10; second += 1) {
    played.clock.advance(1000);
    for (const { ear } of Array.from(played.running)) ear.dialed("refusal", "connect ECONNREFUSED");
  }
  assert.is(played.begun.length - before, 20);
});

test("a stall of the proxy is not the backend's silence (F11)", () => {
  const played = play(ready);
  played.clock.advance(600);
  played.clock.stall(2000);
  played.clock.advance(500);
  assert.equal(played.learnt, []);
});

test("answers after the end are not heard, and a stopped prober asks no more", () => {
  const played = play(ready);
  played.clock.advance(600);
  const [run] = played.running;
  played.prober.stop();
  run?.ear.dialed("answer", "");
  played.clock.advance(10_000);
  assert.equal([played.learnt.length, played.begun.length, played.running.length], [0, 1, 0]);
});

test("what falls in step falls out of it: each wait is a tenth more or less", () => {
  const clock = manualClock();
  const begun: number[] = [];
  let next = 0;
  const prober = new Prober({
    clock,
    random: () => [0, 0, 0.999][next++ % 3] ?? 0,
    times: { intervalMs: 1000, timeoutMs: 3000 },
    facts: () => ready,
    learn() {},
    dialMs: () => 1000,
    mayLoseLargePackets: () => false,
    passesSmallPackets: () => false,
    probe(ear) {
      begun.push(clock.now());
      ear.dialed("refusal", "");
      return () => {};
    },
  });
  prober.start();
  clock.advance(2050);
  assert.equal(begun.map(Math.round), [0, 900, 2000]);
  prober.stop();
});

/** Tells the last probe that its connection is open. /readyz does not answer. */
function openLast({ running }: Played): void {
  running.at(-1)?.ear.dialed("answer", "");
}

const verdicts = ({ learnt }: Played): (string | undefined)[] =>
  learnt.map((evidence) => (evidence.kind === "readyz" ? evidence.readiness : undefined)).filter(Boolean);

test("while requests wait in vain /readyz is asked at once, and has less time to answer", () => {
  const played = play(ready);
  const { clock, prober, begun } = played;
  clock.advance(800);
  answerAll(played);
  prober.expediteProbe();
  assert.is(begun.length, 2, "at once");
  openLast(played);
  clock.advance(healthLimits.hastyAnswerMs - 1);
  assert.equal(verdicts(played), ["ready"]);
  clock.advance(1);
  assert.equal(verdicts(played), ["ready", "hanging"]);
});

test("a probe that waits already is given up as early, once; how often it is said makes no difference", () => {
  const played = play(ready);
  const { clock, prober, begun } = played;
  clock.advance(600);
  openLast(played);
  clock.advance(500);
  for (let count = 0; count < 3; count += 1) prober.expediteProbe();
  assert.is(begun.length, 1, "one at a time");
  clock.advance(249);
  assert.equal(verdicts(played), []);
  clock.advance(1);
  assert.equal(verdicts(played), ["hanging"]);
});

test("a backend whose /readyz is slow is given its time, in haste too; and all of it when the haste is over", () => {
  const slow = play(ready);
  for (let round = 0; round < 20; round += 1) {
    slow.clock.advance(500);
    openLast(slow);
    slow.clock.advance(500);
    slow.running.at(-1)?.ear.answered("ready", "");
  }
  slow.clock.advance(500);
  openLast(slow);
  slow.prober.expediteProbe();
  slow.clock.advance(1999);
  assert.not(verdicts(slow).includes("hanging"), "four times what it takes");
  slow.clock.advance(1000);
  assert.ok(verdicts(slow).includes("hanging"));
  const calm = play(ready);
  calm.prober.expediteProbe();
  calm.clock.advance(healthLimits.hastyMs);
  answerAll(calm);
  calm.clock.advance(1000);
  openLast(calm);
  calm.clock.advance(2999);
  assert.equal(verdicts(calm), ["ready"]);
});

test("one that is stopped is not hastened", () => {
  const played = play(ready);
  played.prober.stop();
  played.prober.expediteProbe();
  assert.is(played.begun.length, 0);
});

test("one on its way up is asked as often as one that fell just now, however long it was away", () => {
  const played = play({ ...ready, state: "suspect" });
  played.clock.advance(healthLimits.urgentProbesMs + 1);
  const before = played.begun.length;
  for (let at = 0; at < 2_000; at += 250) {
    played.clock.advance(250);
    answerAll(played);
  }
  assert.ok(played.begun.length - before >= 7, `${played.begun.length - before} in two seconds`);
});

test.run();
