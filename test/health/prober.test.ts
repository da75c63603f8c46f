import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type BackendFacts, noFacts } from "../../src/health/backend.ts";
import type { Evidence } from "../../src/health/evidence.ts";
import { healthLimits } from "../../src/health/limits.ts";
import { type ProbeListener, Prober } from "../../src/health/prober.ts";
import { type ManualClock, manualClock } from "../support/clock.ts";
import { seeded } from "../support/random.ts";

const test = suite("health/prober");

type Played = {
  readonly clock: ManualClock;
  readonly prober: Prober;
  readonly learnt: Evidence[];
  /** Probes that run, oldest first, and when each began. */
  readonly running: { readonly ear: ProbeListener; readonly at: number }[];
  readonly begun: number[];
  held: BackendFacts;
  mayLoseLargePackets: boolean;
  /** A PING was answered that was sent then, and none was late. */
  smallPassedAt: number;
};

const ready: BackendFacts = { ...noFacts, state: "ready", connections: "answering", fresh: "answer" };
const silent: BackendFacts = { ...ready, state: "suspect", connections: "silent", fresh: "none" };

function play(held: BackendFacts): Played {
  const clock = manualClock();
  const played: Omit<Played, "prober"> = {
    clock,
    learnt: [],
    running: [],
    begun: [],
    held,
    mayLoseLargePackets: false,
    smallPassedAt: Number.POSITIVE_INFINITY,
  };
  const prober = new Prober({
    clock,
    random: () => 0.5,
    times: { intervalMs: 1000, timeoutMs: 3000 },
    facts: () => all.held,
    learn: (evidence) => played.learnt.push(evidence),
    dialMs: () => 1000,
    mayLoseLargePackets: () => all.mayLoseLargePackets,
    passesSmallPackets: (since) => all.smallPassedAt > since,
    probe(ear) {
      const run = { ear, at: clock.now() };
      played.running.push(run);
      played.begun.push(clock.now());
      return () => void played.running.splice(played.running.indexOf(run), 1);
    },
  });
  const all = Object.assign(played, { prober });
  prober.start();
  return all;
}

/** Answers whatever is asked. */
function answerAll({ running }: Played): void {
  for (const { ear } of Array.from(running)) {
    ear.dialed("answer", "");
    ear.answered("ready", "");
  }
}

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

/** What the probe that waits last has been told: its socket is open, and /readyz says nothing. */
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

test("a session is stuck in an answer, and no probe's answer comes: large packets are lost, when both go on", () => {
  const isLost = (isStuck: boolean, isAnswered: boolean, isDialed = true): boolean => {
    const played = play(ready);
    played.clock.advance(1000);
    answerAll(played);
    played.clock.advance(200);
    played.mayLoseLargePackets = true;
    played.prober.probeLargePackets();
    assert.is(played.running.length, 1, "asked at once");
    const [run] = played.running;
    run?.ear.connected();
    if (isDialed) run?.ear.dialed("answer", "");
    played.clock.advance(400);
    if (isAnswered) run?.ear.answered("ready", "");
    played.mayLoseLargePackets = isStuck;
    played.clock.advance(110);
    const [lost] = played.learnt.filter(({ kind }) => kind === "packets-lost");
    assert.ok(lost === undefined || (lost.kind === "packets-lost" && lost.ms >= 500 && lost.limitMs === 500));
    return lost !== undefined;
  };
  assert.is(isLost(true, false), true);
  assert.is(isLost(true, false, false), true, "nor does the TLS handshake come through");
  assert.is(isLost(false, false), false, "its packet was lost, and sent again");
  assert.is(isLost(true, true), false, "one connection has a hole of its own");
});

/** One probe whose handshake took so long, then one that is connected and gets no answer. */
function stuckHandshake(usualMs = 2): Played {
  const played = play(ready);
  for (let round = 0; round < 3; round += 1) {
    played.clock.advance(1000 - usualMs);
    played.running.at(-1)?.ear.connected();
    played.clock.advance(usualMs);
    answerAll(played);
  }
  while (played.running.length === 0) played.clock.advance(1);
  played.running[0]?.ear.connected();
  return played;
}

const losses = ({ learnt }: Played): Evidence[] => learnt.filter(({ kind }) => kind === "packets-lost");

test("a handshake stops on a connected socket: two more are tried, and when all stop, large packets are lost", () => {
  const played = stuckHandshake();
  played.clock.advance(healthLimits.doubtedHandshakeMs);
  assert.is(played.running.length, 3);
  for (const { ear } of played.running.slice(1)) ear.connected();
  played.clock.advance(healthLimits.lostHandshakeMs);
  assert.equal(losses(played), [{ kind: "packets-lost", ms: 400, limitMs: 250 }]);
  played.clock.advance(700);
  assert.is(losses(played).length, 1, "the two ask for no more");
});

test("no large packets are lost while one handshake of three passes, one socket does not connect, or no PING was answered since", () => {
  const isSilent = (change: (played: Played) => void): void => {
    const played = stuckHandshake();
    played.clock.advance(healthLimits.doubtedHandshakeMs);
    for (const { ear } of played.running.slice(1)) ear.connected();
    played.clock.advance(healthLimits.lostHandshakeMs - 1);
    change(played);
    played.clock.advance(1);
    assert.equal(losses(played), [], change.toString());
  };
  isSilent((played) => played.running[0]?.ear.dialed("answer", ""));
  isSilent((played) => played.running[2]?.ear.dialed("answer", ""));
  isSilent((played) => played.running[1]?.ear.dialed("refusal", ""));
  isSilent((played) => {
    played.smallPassedAt = played.clock.now() - 400;
  });
  const played = stuckHandshake();
  played.clock.advance(healthLimits.doubtedHandshakeMs);
  played.running[1]?.ear.connected();
  played.clock.advance(healthLimits.lostHandshakeMs);
  assert.equal(losses(played), [], "a SYN was lost");
});

test("a far backend's handshakes are given four times what they take", () => {
  const played = stuckHandshake(300);
  played.clock.advance(599);
  assert.is(played.running.length, 1);
  played.clock.advance(400);
  assert.is(played.running.length, 3);
  assert.equal(losses(played), []);
});

test("hours on a path that loses packets: whatever the PINGs say, no handshakes are taken for lost large packets", () => {
  const ways = [
    { lost: 0.01, rttMs: () => 1, resendMs: 201 },
    { lost: 0.05, rttMs: () => 1, resendMs: 201 },
    { lost: 0.02, rttMs: (share: number) => 300 + 400 * share, resendMs: 900 },
  ];
  for (const { lost, rttMs, resendMs } of ways) {
    const random = seeded(7);
    const share = (): number => random.below(1000) / 1000;
    const clock = manualClock();
    const learnt: Evidence[] = [];
    /** A packet and its answer; the kernel sends again later each time. */
    const trip = (firstMs: number): number => {
      let [ms, waitMs] = [rttMs(share()), firstMs];
      for (; random.chance(1 - (1 - lost) ** 2); waitMs *= 2) ms += waitMs;
      return ms;
    };
    /** The larger part of what three packets each way take. */
    const flight = (): number => Math.max(trip(resendMs), trip(resendMs));
    const prober = new Prober({
      clock,
      random: share,
      times: { intervalMs: 1000, timeoutMs: 3000 },
      facts: () => ready,
      learn: (evidence) => learnt.push(evidence),
      dialMs: () => 1000 + 10 * rttMs(0.5),
      mayLoseLargePackets: () => false,
      passesSmallPackets: () => true,
      probe(ear) {
        let isOver = false;
        const after = (ms: number, run: () => void): unknown => clock.after(ms, () => !isOver && run());
        after(trip(1000), () => {
          ear.connected();
          after(flight(), () => {
            ear.dialed("answer", "");
            after(flight(), () => ear.answered("ready", ""));
          });
        });
        return () => {
          isOver = true;
        };
      },
    });
    prober.start();
    clock.advance(3 * 3_600_000);
    assert.equal(learnt.filter(({ kind }) => kind === "packets-lost").length, 0, `${100 * lost} % lost`);
    assert.ok(prober.counts.answers > 3600);
  }
});

/** A kept socket: `answer` answers its latest request. */
function keptSocket(): {
  asked: number;
  isClosed: boolean;
  answer(): void;
  ask(f: () => void): void;
  close(): void;
} {
  let answer = (): void => {};
  return {
    asked: 0,
    isClosed: false,
    answer: () => answer(),
    ask(answered) {
      this.asked += 1;
      answer = answered;
    },
    close() {
      this.isClosed = true;
    },
  };
}

/** Probes that connect to a silent backend and get no TLS answer, after a probe whose socket was kept. */
function playKept(): { played: Played; kept: ReturnType<typeof keptSocket> } {
  const played = play(ready);
  const kept = keptSocket();
  played.clock.advance(500);
  const [first] = played.running;
  first?.ear.connected();
  first?.ear.dialed("answer", "");
  first?.ear.answered("ready", "", kept);
  played.smallPassedAt = 0;
  played.held = silent;
  played.clock.advance(1000);
  for (const { ear } of played.running) ear.connected();
  return { played, kept };
}

test("no connection answers, but the kept socket does: large packets are lost, and no new socket counts as silent", () => {
  const { played, kept } = playKept();
  const from = played.learnt.length;
  for (let count = 0; count < 40; count += 1) {
    played.clock.advance(100);
    for (const { ear, at } of played.running) if (played.clock.now() - at <= 100) ear.connected();
    kept.answer();
  }
  const kinds = new Set(played.learnt.slice(from).map(({ kind }) => kind));
  assert.equal([...kinds], ["packets-lost"]);
  assert.ok(kept.asked > 2);
});

test("no connection answers, nor does the kept socket: new sockets are silent", () => {
  const { played, kept } = playKept();
  const from = played.learnt.length;
  played.clock.advance(4000);
  assert.equal([...new Set(played.learnt.slice(from).map(({ kind }) => kind))], ["fresh"]);
  assert.is(kept.asked, 1);
});

test("an answer from before the probe proves nothing", () => {
  const { played, kept } = playKept();
  played.clock.advance(200);
  kept.answer();
  played.clock.advance(100);
  const later = played.learnt.length;
  played.clock.advance(1400);
  assert.ok(played.learnt.slice(later).some(({ kind }) => kind === "fresh"));
});

test("connections answer: the kept socket is no evidence, because PINGs also show a path that loses all packets", () => {
  const { played, kept } = playKept();
  played.held = ready;
  const from = played.learnt.length;
  played.clock.advance(200);
  kept.answer();
  played.clock.advance(1000);
  assert.is(losses(played).length, 0);
  assert.ok(played.learnt.slice(from).some(({ kind }) => kind === "fresh"));
});

test("one socket is kept: the last, until the prober is stopped", () => {
  const { played, kept } = playKept();
  const next = keptSocket();
  const [run] = played.running;
  run?.ear.dialed("answer", "");
  run?.ear.answered("ready", "", next);
  assert.equal([kept.isClosed, next.isClosed], [true, false]);
  played.prober.stop();
  assert.is(next.isClosed, true);
  const late = keptSocket();
  run?.ear.answered("ready", "", late);
  assert.is(late.isClosed, true);
});

test("what /readyz has answered since on another socket shows that large packets pass", () => {
  const played = play(silent);
  played.clock.advance(800);
  played.mayLoseLargePackets = true;
  for (const { ear } of played.running) ear.connected();
  played.clock.advance(300);
  const [, second] = played.running;
  second?.ear.dialed("answer", "");
  second?.ear.answered("ready", "");
  played.clock.advance(600);
  assert.equal(losses(played), []);
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
