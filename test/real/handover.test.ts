/**
 * watchkeeper is replaced by a new process three times while client-go's informers and watches, GETs and execs run
 * through it. HANDOVER_ROUNDS sets another number of replacements.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { places, Stage } from "./load/stage.ts";
import { Storm } from "./load/storm.ts";
import { Tunnel } from "./load/tunnel.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { type Said, saidSince } from "./rig/said.ts";
import { summary } from "./storm/tell.ts";

const test = suite("real/handover");
const real = testWith(test, [...clusterNeeds, "informer"]);
const rounds = Number(process.env["HANDOVER_ROUNDS"] ?? 3);
const drainMs = 8_000;

let stage: Stage;
/** Process ids of the present proxy and of all earlier ones. The rig knows only the first process. */
const pids: number[] = [];

test.before(async () => {
  if (!real.canRun) return;
  stage = await Stage.start({}, { drain: { shutdownDelay: "5s", timeout: `${drainMs}ms` } });
  pids.push(stage.proxy.pid);
});

test.after(async () => {
  if (!real.canRun) return;
  for (const pid of pids.slice(1)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // The first process has already exited, as it should.
    }
  }
  await stage.stop();
});

/** Starts a successor process. Resolves with the log entry that says that the successor serves. */
async function handOver(): Promise<Said> {
  const from = Date.now();
  process.kill(pids.at(-1) ?? 0, "SIGUSR2");
  while (Date.now() < from + 30_000) {
    const ready = saidSince(stage.proxy.logFile, from).find(({ msg }) => msg.startsWith("successor."));
    if (ready?.msg === "successor.failed") throw new Error(String(ready["err"]));
    const served = saidSince(stage.proxy.logFile, from).find(({ msg }) => msg === "successor.ready");
    if (served !== undefined) return served;
    await sleep(20);
  }
  throw new Error("Waited 30 s for a successor");
}

real(`a restart of watchkeeper itself, ${rounds} times, affects no client`, async () => {
  const crowd = { watches: 20, informers: 5, writesPerSecond: 20, getsPerSecond: 20, others: false };
  const storm = await Storm.start(stage, { ...crowd, namespaces: 2, seed: 1 });
  const wrong: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const execs = [
      await Tunnel.open(stage.server, "exec", places.pod),
      await Tunnel.open(stage.server, "exec", places.pod),
    ];
    const { ts, pid } = await handOver();
    pids.push(Number(pid));
    await sleep(drainMs / 2);
    for (const exec of execs)
      if (!(await exec.answers())) wrong.push("an exec is gone before the drain's end");
    await sleep(drainMs / 2 + 1_000);
    for (const { endedAt } of execs)
      if (!(endedAt - ts >= drainMs - 500)) wrong.push(`an exec ended ${endedAt - ts} ms after the handover`);
  }
  const outcome = await storm.stop();
  for (const line of summary(outcome).split("\n")) figure(line);
  const { watches, informers, gets } = outcome;
  assert.equal(wrong, []);
  assert.is(gets.failures, "");
  assert.equal(informers, { relists: 0, backwards: 0, unequal: 0 });
  assert.equal([watches.missing, watches.doubled, watches.reordered, watches.relists], [0, 0, 0, 0]);
  // EOF is Go's name for END_STREAM. Each watch ended exactly once in each round, and only with END_STREAM between two
  // events.
  const ends = [...watches.ends].map(([how, count]) => [how.replace(" (cbor)", ""), count] as const);
  assert.equal(new Set(ends.map(([how]) => how)), new Set(["ended: EOF"]));
  assert.is(
    ends.reduce((sum, [, count]) => sum + count, 0),
    crowd.watches * rounds,
  );
});

test.run();
