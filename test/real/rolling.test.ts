/**
 * Every apiserver restarted in turn, several times over, while clients of all kinds go on. ROLLING_ROUNDS asks for
 * other than three rounds.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { places, Stage } from "./load/stage.ts";
import { Storm } from "./load/storm.ts";
import { rollOver } from "./load/troubles.ts";
import { Tunnel } from "./load/tunnel.ts";
import type { Apiserver } from "./rig/apiserver.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { saidSince } from "./rig/said.ts";
import { misses, summary } from "./storm/tell.ts";

const test = suite("real/rolling");
const real = testWith(test, [...clusterNeeds, "informer"]);
const rounds = Number(process.env["ROLLING_ROUNDS"] ?? 3);

/** Generous: CI's machine is shared. The figure itself is printed. */
const mostDelayMs = 5_000;

let stage: Stage;

test.before(async () => {
  if (real.canRun) stage = await Stage.start();
});

test.after(async () => {
  if (real.canRun) await stage.stop();
});

/** An exec and the apiserver that carries it. */
type Exec = { readonly tunnel: Tunnel; readonly on: unknown };

async function exec(): Promise<Exec> {
  const from = Date.now() - 1_000;
  const tunnel = await Tunnel.open(stage.server, "exec", places.pod);
  assert.ok(await tunnel.answers());
  const opened = saidSince(stage.proxy.logFile, from).find((said) => said["auditId"] === tunnel.auditId);
  return { tunnel, on: opened?.["backend"] };
}

/** Restarts one; says which execs ended before their own apiserver had gone, or with another one. */
async function restart(apiserver: Apiserver, execs: readonly Exec[]): Promise<string[]> {
  let goneAt = Infinity;
  void apiserver.ended.then(() => (goneAt = Date.now()));
  await rollOver(apiserver);
  await stage.proxy.settled(stage.cluster.apiservers.length, 30_000);
  await sleep(3_000);
  return execs
    .filter(({ tunnel, on }) => !tunnel.isOpen && (on !== apiserver.name || tunnel.endedAt < goneAt - 300))
    .map(({ on }) => `an exec on ${String(on)} ended when ${apiserver.name} was restarted`);
}

real("repeated rolling restarts of all apiservers affect no client (row 1, 2, 18)", async () => {
  const crowd = { watches: 20, informers: 5, writesPerSecond: 20, getsPerSecond: 20, others: false };
  const storm = await Storm.start(stage, { ...crowd, namespaces: 2, seed: 1 });
  const wrong: string[] = [];
  let execs = [await exec(), await exec()];
  for (let round = 0; round < rounds; round++) {
    for (const apiserver of stage.cluster.apiservers) {
      storm.spare(apiserver);
      wrong.push(...(await restart(apiserver, execs)));
      execs = await Promise.all(execs.map(async (one) => (one.tunnel.isOpen ? one : exec())));
    }
  }
  for (const { tunnel } of execs) assert.ok(await tunnel.answers(), "an exec lives");
  for (const { tunnel } of execs) tunnel.close();
  const outcome = await storm.stop();
  for (const line of summary(outcome).split("\n")) figure(line);
  assert.equal([...wrong, ...misses(outcome, mostDelayMs)], []);
});

test.run();
