/**
 * Each alert fires in a real Prometheus within ten seconds of its cause, with `for` shortened to two seconds. The
 * alert's text names the apiserver, the client or the certificate. Another Prometheus scrapes the metrics of 5,000
 * proxies.
 */
import { createServer } from "node:http";
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
import { Prometheus, type Told } from "../support/prometheus.ts";
import { programOf } from "../support/promtool.ts";
import { figure } from "./rig/parts.ts";

const test = suite("real/alerts");
const canRun = programOf("prometheus") !== undefined;
if (!canRun && process.env["CI"] !== undefined) throw new Error("Cannot skip in CI: needs prometheus");
if (!canRun) process.stdout.write("skip: needs prometheus: run test/real/prepare.sh\n");
const real = canRun ? test : test.skip;

/** Waits until the alert fires. `since` is when its cause could first be seen on the wire. */
async function timed(prometheus: Prometheus, alertname: string, since: number): Promise<Told> {
  const alert = await prometheus.fired(alertname, 4 * foundMs);
  const ms = Math.round(performance.now() - since);
  figure(`${alertname} fires after ${ms} ms`);
  assert.ok(ms <= 2 * foundMs, `${alertname}: ${ms} ms`);
  const { summary = "", description = "" } = alert.annotations;
  process.stdout.write(`${summary}\n${description}\n`);
  assert.match(
    description,
    /^Affected: .+\nSince: 20\d\d-.+ UTC\.\nFirst: .+\nCommands .+\nReported by:\n- instance 127\.0\.0\.1:\d+: /,
  );
  assert.not.match(`${summary}${description}`, /error expanding|<no value>/);
  return alert;
}

/** Waits until no alert fires: WatchkeeperDown fires until Prometheus' first scrape. */
async function calm(prometheus: Prometheus): Promise<void> {
  for (let tries = 0; tries < 200 && (await prometheus.firing()).length > 0; tries += 1) await sleep(100);
  assert.equal(await prometheus.firing(), []);
}

real("a bad secret, and no alert once a good one is back", async () => {
  const stage = await Stage.start({ listenerTls: "reloadInterval: 1s" });
  const prometheus = await Prometheus.start(stage.proxy.running.adminAddress);
  await calm(prometheus);
  const { since, heal } = await badSecret(stage);
  await timed(prometheus, "WatchkeeperCertificateRefused", since);
  await heal?.();
  await calm(prometheus);
  await prometheus.stop();
  await stage.stop();
});

real("an apiserver that falls silent, by its name", async () => {
  const stage = await Stage.start();
  const prometheus = await Prometheus.start(stage.proxy.running.adminAddress);
  const { culprit, since, heal } = await silentApiserver(stage);
  const { labels, annotations } = await timed(prometheus, "WatchkeeperBackendDown", since);
  assert.is(labels["backend"], culprit);
  assert.match(annotations["summary"] ?? "", /cannot be used: backend-frozen/);
  await heal?.();
  await stage.ended("backend-frozen");
  await prometheus.stop();
  await stage.stop();
});

real("a ghost that renews a lease, with the address where it lives", async () => {
  const stage = await Stage.start();
  const prometheus = await Prometheus.start(stage.proxy.running.adminAddress);
  const { culprit, since } = await ghostHolder(stage);
  const { labels, annotations } = await timed(prometheus, "WatchkeeperLeaseSuspect", since);
  assert.is(labels["name"], "leader");
  assert.match(annotations["summary"] ?? "", / ghost$/);
  assert.match(annotations["description"] ?? "", `renewed last from ${culprit}`);
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
  const { labels, annotations } = await timed(prometheus, "WatchkeeperLeaseSuspect", since);
  assert.is(labels["name"], "leader");
  assert.match(annotations["summary"] ?? "", / contested$/);
  assert.match(annotations["description"] ?? "", "holder manager-0, renewed last from 127.0.0.2");
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
  const { labels } = await timed(prometheus, "WatchkeeperLoopbackCertificateExpiring", performance.now());
  assert.is(labels["backend"], "cp-2");
  await prometheus.stop();
  await stage.stop();
});

/**
 * The metrics of 5,000 proxies on nodes, to all of which cp-2 is down, on one page for one scrape, as Prometheus
 * federation exposes them.
 */
function fleetText(): string {
  const kinds = ["backend-dead", "backend-blackholed", "backend-frozen"];
  const lines = Array.from({ length: 5000 }, (_, at) => {
    const own = `job="watchkeeper",instance="node-${at}:7481"`;
    return [
      `up{${own}} 1`,
      `watchkeeper_incident_active{${own},kind="${kinds[at % 3]}",backend="cp-2"} 1`,
      `watchkeeper_backend_ready{${own},backend="cp-1"} 1`,
      `watchkeeper_backend_ready{${own},backend="cp-2"} 0`,
    ].join("\n");
  });
  return `${lines.join("\n")}\n`;
}

real("one dead apiserver that 5,000 proxies see is one warning, with five of them in its text", async () => {
  const text = fleetText();
  const server = createServer(
    (_, response) => void response.setHeader("content-type", "text/plain").end(text),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : 0;
  const prometheus = await Prometheus.start(`127.0.0.1:${port}`, { honorLabels: true });
  const { labels, annotations } = await prometheus.fired("WatchkeeperBackendDown", 12 * foundMs);
  assert.is(labels["severity"], "warning");
  assert.match(
    annotations["summary"] ?? "",
    /cp-2 .*backend-blackholed backend-dead backend-frozen \(instances: 5000\)/,
  );
  assert.is(annotations["description"]?.match(/^- instance node-\d+:7481: backend-/gm)?.length, 5);
  assert.is((await prometheus.firing()).length, 1);
  await prometheus.stop();
  server.closeAllConnections();
  server.close();
});

test.run();
