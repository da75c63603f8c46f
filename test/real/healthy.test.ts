/**
 * Without a fault, nothing is reported: clients send all kinds of requests at the same time in front of real
 * apiservers, and there is no incident and no alert. HEALTHY_SECONDS sets a longer duration; `npm run test:healthy`
 * runs for half an hour.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { isMissing, seriesOf, wrongAlerts } from "../support/promtool.ts";
import { Client } from "./load/client.ts";
import { Elections } from "./load/elections.ts";
import { Logs } from "./load/logs.ts";
import { bigCount, places, Stage } from "./load/stage.ts";
import { Storm } from "./load/storm.ts";
import { Tunnel } from "./load/tunnel.ts";
import { call } from "./rig/call.ts";
import { clusterNeeds, figure, pathOf, testWith } from "./rig/parts.ts";
import { saidSince } from "./rig/said.ts";
import { summary } from "./storm/tell.ts";

const test = suite("real/healthy");
const real = testWith(test, [...clusterNeeds, "informer", "kubectl"]);
const seconds = Number(process.env["HEALTHY_SECONDS"] ?? 30);
const crowd = { watches: 30, informers: 4, writesPerSecond: 10, getsPerSecond: 10, others: false };
/** Milliseconds between short-lived clients, each of which performs one operation. */
const visitMs = 5_000;

let stage: Stage;

test.before(async () => {
  if (real.canRun) stage = await Stage.start();
});

test.after(async () => {
  if (real.canRun) await stage.stop();
});

/** Runs a large LIST, an exec and a kubectl, each with a new client. */
async function visit(): Promise<void> {
  const client = new Client(stage.server);
  const { status, ending, body } = await client.ask({ path: places.big });
  const { items } = JSON.parse(body.toString()) as { readonly items: readonly unknown[] };
  assert.equal([status, ending, items.length], [200, "whole", bigCount]);
  client.close();
  const tunnel = await Tunnel.open(stage.server, "exec", places.pod);
  assert.ok(await tunnel.answers());
  tunnel.close();
  const config = `--kubeconfig=${stage.cluster.kubeconfig(stage.proxy.url)}`;
  const { code, err } = await call(pathOf("kubectl"), [config, "get", "pods", "-A"]);
  assert.is(code, 0, err);
}

real(`${seconds} s of everything that clients do is no incident, and no alert`, async () => {
  const from = Date.now();
  const storm = await Storm.start(stage, { ...crowd, namespaces: 2, seed: 7 });
  const elections = new Elections(stage.server);
  const reader = new Client(stage.server);
  const logs = new Logs(reader, places.pod);
  const idle = await Tunnel.open(stage.server, "exec", places.pod);
  const disappointed: string[] = [];
  let visits = 0;
  for (const until = performance.now() + 1_000 * seconds; performance.now() < until; visits += 1) {
    await visit().catch((reason: unknown) => disappointed.push(String(reason)));
    await sleep(visitMs);
  }
  assert.ok(await idle.answers(), "an exec that was silent all the time lives");
  assert.ok(Number.isNaN(logs.endedAt), "logs -f lives");
  const scrape = await (await fetch(`${stage.proxy.metricsUrl}/metrics`)).text();
  idle.close();
  logs.close();
  reader.close();
  await elections.stop();
  const outcome = await storm.stop();
  for (const line of summary(outcome).split("\n")) figure(line);
  const opened = saidSince(stage.proxy.logFile, from).filter(({ msg }) => msg === "incident.opened");
  figure(
    `${seconds} s: ${visits} visitors (${disappointed.length} disappointed), ${elections.turns} leaders with ${elections.renewed} renewals (${elections.failed} failed), ${opened.length} incidents`,
  );
  assert.ok(visits > 0 && elections.renewed > 0 && outcome.watches.events > 0, "there was a load");
  assert.equal(opened, []);
  assert.equal(disappointed, [], "every visitor got what it came for");
  assert.not.match(scrape, /^watchkeeper_incidents_total\{/m);
  if (!isMissing())
    assert.is(await wrongAlerts([{ series: seriesOf(scrape, Date.now() / 1000), expected: [] }]), undefined);
});

test.run();
