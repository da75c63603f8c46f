/** An alert fires in a real Prometheus within five seconds of what it tells of, and names who it is. */
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  badSecret,
  ghostHolder,
  replayLoop,
  shortLoopback,
  silentApiserver,
} from "../support/incident-causes.ts";
import { foundMs, leaseOf, Stage } from "../support/incident-stage.ts";
import { Prometheus } from "../support/prometheus.ts";
import { programOf } from "../support/promtool.ts";
import { figure } from "./rig/parts.ts";

const test = suite("real/alerts");
const canRun = programOf("prometheus") !== undefined;
if (!canRun && process.env["CI"] !== undefined) throw new Error("Cannot skip in CI: needs prometheus");
if (!canRun) process.stdout.write("skip: needs prometheus: run test/real/prepare.sh\n");
const real = canRun ? test : test.skip;

/** Until the alert fires, from the time at which what it tells of shows on the wire. */
async function timed(
  prometheus: Prometheus,
  alertname: string,
  since: number,
): Promise<Readonly<Record<string, string>>> {
  const { labels } = await prometheus.fired(alertname, 4 * foundMs);
  const ms = Math.round(performance.now() - since);
  figure(`${alertname} fires after ${ms} ms`);
  assert.ok(ms <= 2 * foundMs, `${alertname}: ${ms} ms`);
  return labels;
}

real("a bad secret, and no alert once a good one is back", async () => {
  const stage = await Stage.start({ listenerTls: "reloadInterval: 1s" });
  const prometheus = await Prometheus.start(stage.proxy.running.adminAddress);
  assert.equal(await prometheus.firing(), []);
  const { since, heal } = await badSecret(stage);
  await timed(prometheus, "WatchkeeperCertificateRefused", since);
  await heal?.();
  for (let tries = 0; tries < 200 && (await prometheus.firing()).length > 0; tries += 1) await sleep(100);
  assert.equal(await prometheus.firing(), []);
  await prometheus.stop();
  await stage.stop();
});

real("an apiserver that falls silent, by its name", async () => {
  const stage = await Stage.start();
  const prometheus = await Prometheus.start(stage.proxy.running.adminAddress);
  const { culprit, since, heal } = await silentApiserver(stage);
  const labels = await timed(prometheus, "WatchkeeperBackendBlackholed", since);
  assert.is(labels["backend"], culprit);
  await heal?.();
  await stage.ended("backend-frozen");
  await prometheus.stop();
  await stage.stop();
});

real("a ghost that renews a lease, with the address where it lives", async () => {
  const stage = await Stage.start();
  const prometheus = await Prometheus.start(stage.proxy.running.adminAddress);
  const { culprit, since } = await ghostHolder(stage);
  const labels = await timed(prometheus, "WatchkeeperLeaseGhostHolder", since);
  assert.equal([labels["name"], labels["source"]], ["leader", culprit]);
  await prometheus.stop();
  await stage.stop();
});

real("a lease that two hold, with the address that renewed it last", async () => {
  const stage = await Stage.start();
  const prometheus = await Prometheus.start(stage.proxy.running.adminAddress);
  const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
  const one = stage.caller({ "user-agent": "manager/v1" }, "127.0.0.2");
  const other = stage.caller({ "user-agent": "manager/v1" }, "127.0.0.3");
  await one.ask(`POST ${leases}`, leaseOf("leader", "manager-0"));
  await other.ask(`PUT ${leases}/leader`, leaseOf("leader", "manager-0"));
  const since = performance.now();
  await one.ask(`PUT ${leases}/leader`, leaseOf("leader", "manager-0"));
  const labels = await timed(prometheus, "WatchkeeperLeaseContested", since);
  assert.equal([labels["name"], labels["holder"], labels["source"]], ["leader", "manager-0", "127.0.0.2"]);
  await prometheus.stop();
  await stage.stop();
});

real("a client that goes round in circles", async () => {
  const stage = await Stage.start();
  const prometheus = await Prometheus.start(stage.proxy.running.adminAddress);
  const { since } = await replayLoop(stage);
  await timed(prometheus, "WatchkeeperWatchReplayLoop", since);
  await prometheus.stop();
  await stage.stop();
});

real("an apiserver whose certificate for talking to itself ends within a month", async () => {
  const stage = await Stage.start({ loopback: await shortLoopback() });
  const prometheus = await Prometheus.start(stage.proxy.running.adminAddress);
  const labels = await timed(prometheus, "WatchkeeperLoopbackCertificateExpiring", performance.now());
  assert.is(labels["name"], "cp-2");
  await prometheus.stop();
  await stage.stop();
});

test.run();
