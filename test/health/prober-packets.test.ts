/** The prober detects a path that loses large packets (path MTU). */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Evidence } from "../../src/health/evidence.ts";
import { healthLimits } from "../../src/health/limits.ts";
import { Prober } from "../../src/health/prober.ts";
import { manualClock } from "../support/clock.ts";
import { answerAll, type Played, play, ready, silent } from "../support/played-prober.ts";
import { seeded } from "../support/random.ts";

const test = suite("health/prober-packets");

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

/** Three probes whose handshake took `usualMs`, and then one that connects and gets no answer. */
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
    /**
     * Milliseconds for a packet and its answer. Each retransmission by the kernel waits twice as long as the one
     * before.
     */
    const trip = (firstMs: number): number => {
      let [ms, waitMs] = [rttMs(share()), firstMs];
      for (; random.chance(1 - (1 - lost) ** 2); waitMs *= 2) ms += waitMs;
      return ms;
    };
    /** The time until two packets that are sent together have both been answered. */
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

/** A socket that the prober keeps after a probe. `answer` answers its latest request. */
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

/** Probes connect to a silent backend and get no TLS answer. The socket of an earlier probe was kept. */
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
  const later = played.learnt.slice(from).map((evidence) => evidence.kind);
  const begunAt = played.learnt.flatMap((evidence) => (evidence.kind === "fresh" ? [evidence.begunAt] : []));
  assert.ok(
    begunAt.every((at) => at < 1800),
    "only the sockets opened before the kept socket's first answer",
  );
  assert.ok(later.filter((kind) => kind === "packets-lost").length > 5);
  assert.ok(kept.asked > 2);
});

test("no connection answers, nor does the kept socket: new sockets are silent", () => {
  const { played, kept } = playKept();
  const from = played.learnt.length;
  played.clock.advance(4000);
  assert.equal([...new Set(played.learnt.slice(from).map(({ kind }) => kind))], ["fresh"]);
  assert.is(kept.asked, 1);
});

test("an outage ends, and a socket connects just before its time is over: no large packets are lost", () => {
  const { played, kept } = playKept();
  const connected = new Set(played.running);
  // The outage lasts from 500 to 3000 ms.
  for (let ms = 0; ms < 4500; ms += 10) {
    played.clock.advance(10);
    const now = played.clock.now();
    // The kernel repeats a lost SYN after one second, just before the probe's time is over.
    for (const run of played.running) {
      if ((ms > 500 && now - run.at < 990) || connected.has(run)) continue;
      connected.add(run);
      run.ear.connected();
    }
    if (ms >= 3000) kept.answer();
  }
  assert.is(losses(played).length, 0);
});

test("an outage ends for the kept socket, and the sockets opened during it stay unanswered: no large packets are lost", () => {
  for (let ms = 10; ms < 1500; ms += 10) {
    const { played, kept } = playKept();
    const step = (): void => {
      played.clock.advance(1);
      for (const { ear, at } of played.running) if (at === played.clock.now()) ear.connected();
    };
    for (let at = 0; at < ms; at += 1) step();
    kept.answer();
    const endedAt = played.clock.now();
    for (let at = 0; at < 1500; at += 1) {
      step();
      kept.answer();
      const isDue = (openedAt: number): boolean => openedAt > endedAt && played.clock.now() - openedAt > 20;
      for (const run of played.running.filter((one) => isDue(one.at))) run.ear.dialed("answer", "");
    }
    assert.is(losses(played).length, 0, `after ${ms} ms`);
  }
});

test("a stopped process goes on and answers the kept socket first: no large packets are lost", () => {
  for (let ms = 10; ms < 1000; ms += 10) {
    const { played, kept } = playKept();
    const connect = (): void => {
      for (const { ear, at } of played.running) if (at === played.clock.now()) ear.connected();
    };
    for (let at = 0; at < ms; at += 1) {
      played.clock.advance(1);
      connect();
    }
    kept.answer();
    for (let at = 0; at < 100; at += 1) {
      played.clock.advance(1);
      connect();
    }
    for (const { ear } of Array.from(played.running)) ear.dialed("answer", "");
    played.clock.advance(100);
    assert.is(losses(played).length, 0, `after ${ms} ms`);
  }
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

test.run();
