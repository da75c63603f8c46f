import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { KeepaliveTick } from "../../../src/upstream/pool/connection.ts";
import { Keepalive, type KeptAlive } from "../../../src/upstream/pool/keepalive.ts";
import { upstreamLimits } from "../../../src/upstream/pool/limits.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";

const test = suite("upstream/pool/keepalive");

/** An upstream connection whose backend answers a PING after `answersAfterMs`, or never. */
class PlayedConnection implements KeptAlive {
  readonly #clock: ManualClock;
  readonly number: number;
  answersAfterMs: number | undefined = 1;
  silentSince: number | undefined;
  readonly pingedAt: number[] = [];
  /** True if a request on it can go on nowhere else. */
  isBound = false;

  constructor(clock: ManualClock, number = 0) {
    this.#clock = clock;
    this.number = number;
  }

  tick({ isTurn }: KeepaliveTick): void {
    if (isTurn) this.ask();
  }

  ask(): void {
    if (this.silentSince !== undefined) return;
    const now = this.#clock.now();
    this.silentSince = now;
    this.pingedAt.push(now);
    if (this.answersAfterMs === undefined) return;
    this.#clock.after(this.answersAfterMs, () => {
      this.silentSince = undefined;
    });
  }

  leaveBehind(): boolean {
    return this.isBound;
  }

  discountStall(ms: number): void {
    if (this.silentSince !== undefined) this.silentSince += ms;
  }
}

type Played = {
  readonly clock: ManualClock;
  readonly connection: PlayedConnection;
  readonly connections: readonly PlayedConnection[];
  readonly keepalive: Keepalive<PlayedConnection>;
  readonly suspectedAt: number[];
  readonly deadAt: number[];
  isAnswering: boolean;
  answersAgainAt: number;
  packetsLostAt: () => number;
  othersAnsweredAt: () => number;
  silenceOverAt: number;
  isRemoved: boolean;
};

function play(startsAt = 0, others = 0): Played {
  const clock = manualClock();
  clock.advance(startsAt);
  let looks = 0;
  const connection = new PlayedConnection(clock);
  const connections = [
    connection,
    ...Array.from({ length: others }, (_, index) => new PlayedConnection(clock, index + 1)),
  ];
  const played = {
    clock,
    connection,
    connections,
    suspectedAt: [],
    deadAt: [],
    isAnswering: false,
  } as unknown as Played;
  played.answersAgainAt = 0;
  played.packetsLostAt = () => -1;
  played.silenceOverAt = 0;
  played.isRemoved = false;
  played.othersAnsweredAt = () => clock.now();
  const keepalive = new Keepalive<PlayedConnection>({
    clock,
    times: { intervalMs: 250, suspectAfterMs: 600, deadAfterMs: 2100, deadAfterWhenAllSilentMs: 10_000 },
    connections: () => connections,
    health: {
      silent: () => played.suspectedAt.push(clock.now()),
      notifyAttempts() {
        looks += 1;
        if (looks > 1_000) throw new Error("Looks for ever");
      },
      get hasAnswering() {
        return played.isAnswering;
      },
    },
    dead: () => {
      played.deadAt.push(clock.now());
      connection.silentSince = undefined;
    },
    facts: () => ({
      fresh: "none",
      answersAgainAt: played.answersAgainAt,
      packetsLostAt: played.packetsLostAt(),
    }),
    othersAnsweredAt: () => played.othersAnsweredAt(),
    silenceOverAt: () => played.silenceOverAt,
    isRemoved: () => played.isRemoved,
    ticked() {},
  });
  keepalive.start();
  return Object.assign(played, { keepalive });
}

test("a deadline that falls between two numbers is met, not looked at for ever", () => {
  // In floating-point numbers, startsAt + 250 + 600 - (startsAt + 250) is slightly less than 600.
  const startsAt = 701.2445450182414;
  const { clock, suspectedAt, connection } = play(startsAt);
  connection.answersAfterMs = undefined;
  clock.advance(900);
  assert.is(suspectedAt[0], startsAt + 250 + 600);
});

test("a PING goes out every interval while they are answered", () => {
  const { clock, connection, suspectedAt } = play();
  clock.advance(1100);
  assert.equal(connection.pingedAt, [250, 500, 750, 1000]);
  assert.equal(suspectedAt, []);
});

test("deadlines are kept to the millisecond, not to the next tick", () => {
  const { clock, connection, suspectedAt, deadAt } = play();
  connection.answersAfterMs = undefined;
  clock.advance(3000);
  assert.is(suspectedAt[0], 250 + 600);
  assert.is(deadAt[0], 250 + 2100);
});

test("an answer that comes just in time is no silence", () => {
  const { clock, connection, suspectedAt } = play();
  connection.answersAfterMs = 599;
  clock.advance(10_000);
  assert.equal(suspectedAt, []);
});

test("time in which the proxy's own loop stood still is held against no backend, and answers are read first (F11)", () => {
  const { clock, connection, suspectedAt } = play();
  connection.answersAfterMs = 40;
  clock.advance(260);
  clock.stall(2000);
  clock.advance(1000);
  assert.equal(suspectedAt, []);
  connection.answersAfterMs = undefined;
  clock.advance(250);
  const pingedAt = connection.pingedAt.at(-1) ?? 0;
  clock.stall(2000);
  clock.advance(3000);
  assert.ok((suspectedAt[0] ?? 0) >= pingedAt + 600 + 1700, "the stall is not part of the silence");
});

test("a silent upstream connection of a backend that answers elsewhere is given its kernel's time to send again", () => {
  const played = play();
  played.isAnswering = true;
  played.connection.answersAfterMs = undefined;
  played.clock.advance(250 + upstreamLimits.connectionPatienceMs - 1);
  assert.equal(played.deadAt, []);
  played.clock.advance(1);
  assert.is(played.deadAt.length, 1);
});

test("what can go on nowhere else keeps a silent upstream connection for 30 s while its backend answers elsewhere", () => {
  for (const passesSmall of [false, true]) {
    const played = play();
    played.isAnswering = !passesSmall;
    played.packetsLostAt = () => (passesSmall ? played.clock.now() - 500 : -1);
    played.connection.isBound = true;
    played.connection.answersAfterMs = undefined;
    played.clock.advance(upstreamLimits.boundPatienceMs);
    assert.equal(played.deadAt, []);
    played.clock.advance(500);
    assert.is(played.deadAt.length, 1);
  }
});

test("while no backend answers a silent upstream connection is kept for the time that is given to all (D14)", () => {
  for (const lastMs of [0, 250, 250 + upstreamLimits.togetherMs]) {
    const played = play();
    played.othersAnsweredAt = () => Math.min(played.clock.now(), lastMs);
    played.connection.answersAfterMs = undefined;
    played.clock.advance(250 + 10_000 - 1);
    assert.equal(played.deadAt, []);
    played.clock.advance(1);
    assert.is(played.deadAt.length, 1);
  }
});

test("one other backend that answered what was asked a second later leaves the silent one alone with it", () => {
  const played = play();
  played.othersAnsweredAt = () => Math.min(played.clock.now(), 251 + upstreamLimits.togetherMs);
  played.connection.answersAfterMs = undefined;
  played.clock.advance(3000);
  assert.is(played.deadAt[0], 250 + 2100);
});

test("after a silence of all, one backend's answer leaves the others as much time as a silence that begins then", () => {
  const played = play();
  played.connection.answersAfterMs = undefined;
  played.othersAnsweredAt = () => 0;
  played.clock.advance(250 + 5000);
  played.silenceOverAt = played.clock.now();
  played.othersAnsweredAt = () => played.silenceOverAt;
  played.clock.advance(2100 - 1);
  assert.equal(played.deadAt, []);
  played.clock.advance(1);
  assert.is(played.deadAt.length, 1);
});

test("after a long hole an upstream connection is given as much time again as the hole lasted: its kernel waits that long", () => {
  const played = play();
  played.connection.answersAfterMs = undefined;
  played.othersAnsweredAt = () => 0;
  played.clock.advance(250 + 9000);
  played.isAnswering = true;
  played.answersAgainAt = played.clock.now();
  played.clock.advance(9000 + upstreamLimits.connectionPatienceMs - 1);
  assert.equal(played.deadAt, []);
  played.clock.advance(1);
  assert.is(played.deadAt.length, 1);
});

test("after a silence of all an upstream connection is given as much time again, though nothing is known of its backend's own silence", () => {
  for (const isRemoved of [false, true]) {
    const played = play();
    played.isRemoved = isRemoved;
    played.connection.answersAfterMs = undefined;
    played.othersAnsweredAt = () => 0;
    played.clock.advance(250 + 9000);
    played.isAnswering = !isRemoved;
    played.silenceOverAt = played.clock.now();
    played.othersAnsweredAt = () => played.silenceOverAt;
    played.clock.advance(9000 + upstreamLimits.connectionPatienceMs - 1);
    assert.equal(played.deadAt, [], isRemoved ? "of a removed backend" : "of one that was added again");
    played.clock.advance(1);
    assert.is(played.deadAt.length, 1);
  }
});

test("an upstream connection of a removed backend that falls silent alone is given up as any other", () => {
  const played = play();
  played.isRemoved = true;
  played.connection.answersAfterMs = undefined;
  played.clock.advance(250 + 2100);
  assert.is(played.deadAt.length, 1);
});

test("where upstream connections are many they take turns, each its own, and none waits longer than the others", () => {
  const { clock, connections } = play(0, 2 * upstreamLimits.pingsPerBeat - 1);
  clock.advance(250);
  const asked = connections.filter(({ pingedAt }) => pingedAt.length === 1);
  assert.is(asked.length, (2 * upstreamLimits.pingsPerBeat) / upstreamLimits.pingTurns);
  clock.advance(3750);
  for (const { pingedAt } of connections) assert.is(pingedAt.length, 16 / upstreamLimits.pingTurns);
});

test("of many, one that is slow to answer has all others asked at once: a backend that is silent is told soon", () => {
  const { clock, connections } = play(0, 2 * upstreamLimits.pingsPerBeat - 1);
  for (const each of connections) each.answersAfterMs = undefined;
  clock.advance(400);
  const rollAt = 250 + upstreamLimits.rollCallShare * 600;
  const asked = connections.map(({ pingedAt }) => pingedAt);
  assert.is(asked.filter(([at]) => at === 250).length, connections.length / upstreamLimits.pingTurns);
  assert.is(
    asked.filter(([at]) => at === rollAt).length,
    connections.length - connections.length / upstreamLimits.pingTurns,
  );
});

test("prompt answers cause no extra PINGs", () => {
  const { clock, connections } = play(0, 2 * upstreamLimits.pingsPerBeat - 1);
  for (const each of connections) each.answersAfterMs = upstreamLimits.rollCallShare * 600 - 1;
  clock.advance(4000);
  for (const { pingedAt } of connections) assert.is(pingedAt.length, 16 / upstreamLimits.pingTurns);
});

test("a stopped pulse does nothing any more", () => {
  const { clock, connection, keepalive } = play();
  clock.advance(300);
  keepalive.stop();
  clock.advance(1000);
  assert.is(connection.pingedAt.length, 1);
});

test.run();
