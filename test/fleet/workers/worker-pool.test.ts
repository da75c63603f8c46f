import { Socket } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { workerLimits } from "../../../src/fleet/workers/limits.ts";
import { protocolVersion } from "../../../src/fleet/workers/messages.ts";
import { WorkerPool } from "../../../src/fleet/workers/worker-pool.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";
import { PlayedWorker } from "../../support/played-worker.ts";

const test = suite("fleet/workers/worker-pool");

type Scene = {
  readonly clock: ManualClock;
  readonly pool: WorkerPool;
  readonly entries: Entry[];
  readonly processes: PlayedWorker[];
  readonly started: Promise<Failure | undefined>;
};

function scene(size: number): Scene {
  const clock = manualClock();
  const journal = new Journal(clock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const processes: PlayedWorker[] = [];
  const pool = new WorkerPool({
    clock,
    journal,
    size,
    startProcess: () => {
      const process = new PlayedWorker(100 + processes.length);
      processes.push(process);
      return process;
    },
    greeting: () => [{ kind: "found", cluster: "", backends: [] }],
    received: () => {},
    looked: () => {},
    ended: () => {},
  });
  return { clock, pool, entries, processes, started: pool.start() };
}

function at(processes: readonly PlayedWorker[], index: number): PlayedWorker {
  const process = processes[index];
  if (process === undefined) throw new Error(`There is no process ${index}`);
  return process;
}

/** Passes a socket to the pool. `hasLeft` becomes true when the pool has passed it on or closed it. */
function pass(pool: WorkerPool): { readonly socket: Socket; hasLeft: boolean } {
  const passed = { socket: new Socket(), hasLeft: false };
  pool.pass("kube", passed.socket, () => {
    passed.hasLeft = true;
  });
  return passed;
}

test("workers are greeted, and serve once they say so", async () => {
  const { processes, started, pool, entries } = scene(2);
  assert.is(processes.length, 2);
  assert.equal(at(processes, 0).got, [{ kind: "found", cluster: "", backends: [] }]);
  at(processes, 1).serve();
  assert.is(await started, undefined);
  assert.equal(
    pool.all.map(({ state }) => state),
    ["starting", "serving"],
  );
  assert.equal(
    entries.map(({ kind }) => kind),
    ["worker.started", "worker.started", "worker.ready"],
  );
});

test("if no worker can start, the first reason is told", async () => {
  const { processes, started } = scene(2);
  for (const process of processes) {
    process.say(
      { kind: "hello", version: protocolVersion },
      { kind: "failed", message: "listener kube: no certificate" },
    );
    process.end("exit code 2");
  }
  const outcome = await started;
  assert.ok(outcome instanceof Failure);
  assert.match(outcome.message, /no certificate/);
});

test("a worker that ends is replaced at once, the others keep theirs", () => {
  const { processes, pool, clock, entries } = scene(2);
  for (const process of processes) process.serve();
  at(processes, 0).confirm(7);
  at(processes, 0).end("SIGKILL");
  assert.equal(entries.at(-1), {
    kind: "worker.lost",
    worker: 1,
    pid: 100,
    reason: "SIGKILL",
    sockets: 7,
  });
  clock.advance(0);
  assert.is(processes.length, 3);
  assert.equal(
    pool.all.map(({ state, pid }) => `${state} ${pid}`),
    ["starting 102", "serving 101"],
  );
  assert.not(at(processes, 1).isKilled);
});

test("a worker that drains because of a fault is replaced at once, and drains on", () => {
  const { processes, pool, clock, entries } = scene(2);
  for (const process of processes) process.serve();
  at(processes, 0).confirm(1);
  at(processes, 0).say({ kind: "leaving" }, { kind: "leaving" });
  clock.advance(0);
  assert.is(processes.length, 3);
  at(processes, 2).serve();
  assert.equal(
    pool.all.map(({ number, state, pid }) => `${number} ${state} ${pid}`),
    ["3 serving 102", "2 serving 101", "1 draining 100"],
  );
  for (let second = 0; second < 60; second += 1) {
    clock.advance(1000);
    for (const process of processes) process.answer();
  }
  assert.not(at(processes, 0).isKilled);
  assert.not(pass(pool).socket.destroyed);
  assert.is(at(processes, 0).passed.length, 0);
  at(processes, 0).end("exit code 1");
  clock.advance(60);
  assert.is(processes.length, 3);
  assert.equal(
    pool.all.map(({ number }) => number),
    [3, 2],
  );
  assert.not(entries.some(({ kind }) => kind === "worker.lost"));
});

test("workers that drain because of faults are bounded, and so is the rate of their successors", () => {
  const { processes, pool, clock, entries } = scene(2);
  for (const process of processes) process.serve();
  // The first worker and each of its successors fail as soon as they serve.
  const delays: number[] = [];
  for (const index of [0, 2, 3, 4]) {
    at(processes, index).say({ kind: "leaving" });
    const startedAt = clock.now();
    while (processes.length < Math.max(3, index + 2) && clock.now() - startedAt < 1000) clock.advance(100);
    delays.push(clock.now() - startedAt);
    if (index !== 4) at(processes, index === 0 ? 2 : index + 1).serve();
  }
  assert.equal(delays, [100, 200, 400, 800]);
  assert.equal(
    processes.map(({ isKilled }) => isKilled),
    [true, false, true, false, false, false],
  );
  assert.is(pool.all.filter(({ state }) => state === "draining").length, 2);
  assert.equal(new Set(pool.all.map(({ number }) => number)), new Set([1, 2, 3, 4]));
  assert.is(entries.filter(({ kind }) => kind === "worker.lost").length, 2);
});

test("a drain reaches workers that drain already because of a fault, and starts no successor", async () => {
  const { processes, pool, clock } = scene(1);
  at(processes, 0).serve();
  at(processes, 0).say({ kind: "leaving" });
  const over = pool.drain({ shutdownDelayMs: 0, timeoutMs: 1000 });
  assert.is(at(processes, 0).got.at(-1)?.kind, "drain");
  clock.advance(5000);
  at(processes, 0).end("exit code 1");
  await over;
  assert.is(processes.length, 1);
});

test("a process that ends while it starts is reported with its own reason", () => {
  const { processes, clock, entries } = scene(1);
  at(processes, 0).serve();
  at(processes, 0).end("SIGKILL");
  clock.advance(0);
  at(processes, 1).end("exit code 1");
  assert.equal(
    entries.flatMap((entry) => (entry.kind === "worker.lost" ? [entry.reason] : [])),
    ["SIGKILL", "exit code 1"],
  );
});

test("a worker that does not answer for five seconds is killed and replaced", () => {
  const { processes, clock, entries } = scene(1);
  at(processes, 0).serve();
  for (let second = 0; second < 20; second += 1) {
    clock.advance(1000);
    at(processes, 0).answer();
  }
  assert.not(at(processes, 0).isKilled);
  clock.advance(1000);
  clock.advance(workerLimits.hungMs);
  assert.not(at(processes, 0).isKilled);
  clock.advance(1000);
  assert.ok(at(processes, 0).isKilled);
  assert.ok(entries.some((entry) => entry.kind === "worker.lost" && entry.reason === "it does not answer"));
  assert.is(processes.length, 2);
});

test("a stall of the parent counts against no worker", () => {
  const { processes, clock } = scene(2);
  at(processes, 0).serve();
  clock.advance(1500);
  clock.stall(60_000);
  clock.advance(0);
  assert.not(processes.some(({ isKilled }) => isKilled));
  at(processes, 0).answer();
  at(processes, 1).serve();
  clock.advance(workerLimits.hungMs);
  at(processes, 0).answer();
  assert.is(processes.length, 2);
});

test("a worker that hangs while it drains is killed, too", () => {
  const { processes, pool, clock } = scene(1);
  at(processes, 0).serve();
  void pool.drain({ shutdownDelayMs: 0, timeoutMs: 60_000 });
  for (let second = 0; second < 7; second += 1) clock.advance(1000);
  assert.ok(at(processes, 0).isKilled);
});

test("a worker that does not start in time is killed", () => {
  const { processes, clock } = scene(1);
  clock.advance(workerLimits.startMs);
  assert.not(at(processes, 0).isKilled);
  clock.advance(workerLimits.askEveryMs);
  assert.ok(at(processes, 0).isKilled);
});

test("a process that cannot be started is tried again", () => {
  const clock = manualClock();
  let tries = 0;
  const pool = new WorkerPool({
    clock,
    journal: new Journal(clock),
    size: 1,
    startProcess: () => {
      tries += 1;
      if (tries === 2) throw new Error("E2BIG");
      return new PlayedWorker(tries);
    },
    greeting: () => [],
    received: () => {},
    looked: () => {},
    ended: () => {},
  });
  void pool.start();
  pool.all[0]?.end("a test");
  assert.throws(() => clock.advance(0), "E2BIG");
  clock.advance(workerLimits.startMs + 2 * workerLimits.askEveryMs);
  clock.advance(workerLimits.mostRestartMs);
  assert.is(tries, 3);
});

test("garbage, an unknown kind, and words before the greeting end that worker only", () => {
  for (const line of ["\u0001garbage", '{"kind":"verdict"}', '{"kind":"ready"}']) {
    const { processes, pool } = scene(2);
    at(processes, 1).serve();
    at(processes, 0).say(line);
    assert.ok(at(processes, 0).isKilled, line);
    assert.is(pool.all[1]?.state, "serving");
  }
});

test("a worker of another protocol is not served", () => {
  const { processes, entries } = scene(1);
  at(processes, 0).say({ kind: "hello", version: protocolVersion + 1 });
  assert.ok(at(processes, 0).isKilled);
  assert.ok(entries.some((entry) => entry.kind === "worker.lost"));
});

test("a worker has at most eight sockets unconfirmed, the next ones wait for it", () => {
  const { processes, pool } = scene(1);
  const [process] = processes;
  assert.ok(process !== undefined);
  process.serve();
  const sockets = Array.from({ length: 10 }, () => pass(pool));
  assert.is(process.passed.length, workerLimits.unconfirmedSockets);
  process.confirm(8);
  assert.is(process.passed.length, 10);
  assert.ok(sockets.every(({ hasLeft }) => hasLeft));
});

test("while no worker serves, sockets wait up to the limit and the time, and are closed after that", () => {
  const { processes, pool, clock } = scene(1);
  const sockets = Array.from({ length: workerLimits.waitingSockets }, () => pass(pool));
  const beyond = pass(pool);
  assert.ok(beyond.socket.destroyed && beyond.hasLeft);
  assert.not(sockets.some(({ hasLeft }) => hasLeft));
  clock.advance(workerLimits.waitingMs + workerLimits.askEveryMs);
  assert.ok(sockets.every(({ socket, hasLeft }) => socket.destroyed && hasLeft));
  const late = pass(pool);
  at(processes, 0).serve();
  assert.ok(late.hasLeft && !late.socket.destroyed);
});

test("sockets that have not reached a worker when it ends go to another one", () => {
  const { processes, pool } = scene(2);
  for (const process of processes) process.serve();
  const { socket } = pass(pool);
  const [first, second] = processes;
  assert.ok(first !== undefined && second !== undefined);
  const [holder, other] = first.passed.length > 0 ? [first, second] : [second, first];
  holder.unsent.push({ listener: "kube", socket });
  holder.end("SIGKILL");
  assert.equal(other.passed, ["kube"]);
  assert.not(socket.destroyed);
});

test("sockets wait while they are held", () => {
  const { processes, pool } = scene(1);
  at(processes, 0).serve();
  const release = pool.hold();
  const { socket } = pass(pool);
  at(processes, 0).confirm(0);
  assert.equal(at(processes, 0).passed, []);
  release();
  assert.equal(at(processes, 0).passed, ["kube"]);
  assert.not(socket.destroyed);
});

test("a worker that complains gets no sockets", () => {
  const { processes, pool } = scene(2);
  for (const process of processes) process.serve();
  at(processes, 0).confirm(0, "memory is short");
  for (let socket = 0; socket < 4; socket += 1) pass(pool);
  assert.is(at(processes, 0).passed.length, 0);
  assert.is(at(processes, 1).passed.length, 4);
});

test("a drain reaches every worker, starts none again, and is over when all have ended", async () => {
  const { processes, pool, clock } = scene(2);
  at(processes, 0).serve();
  const times = { shutdownDelayMs: 0, timeoutMs: 1000 };
  const over = pool.drain(times);
  for (const process of processes) {
    assert.equal(process.got.at(-1), { kind: "drain", times });
    process.end("exit code 0");
  }
  await over;
  clock.advance(60_000);
  assert.is(processes.length, 2);
  assert.is(pool.alive, 0);
  const late = pass(pool);
  assert.ok(late.socket.destroyed);
});

test.run();
