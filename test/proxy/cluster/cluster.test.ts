import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { Journal } from "../../../src/events/journal.ts";
import { type ConfigForCluster, parseConfig } from "../../../src/ops/config/config.ts";
import { isProblems } from "../../../src/ops/config/problem.ts";
import { Cluster } from "../../../src/proxy/cluster/cluster.ts";
import { Intake } from "../../../src/proxy/downstream/intake.ts";
import { Listeners } from "../../../src/proxy/downstream/listeners.ts";
import { OperatorLimits } from "../../../src/proxy/limits/operator-limits.ts";
import { BufferLimiter } from "../../../src/proxy/overload/buffer-limiter.ts";
import { askH2, frontProxyPki, type JudgingBackend, startJudge } from "../../support/front-proxy.ts";
import { until } from "../../support/h1.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/cluster/cluster");

const pki = await frontProxyPki();
const undo: (() => void)[] = [];
test.after.each(() => {
  for (const step of undo.splice(0).toReversed()) step();
});

async function configOf(judge: JudgingBackend): Promise<ConfigForCluster> {
  const { authority, serving } = await testPki();
  const directory = mkdtempSync(join(tmpdir(), "cluster-"));
  undo.push(() => rmSync(directory, { recursive: true }));
  const files = { "tls.crt": serving.certificate, "tls.key": serving.key, "ca.crt": authority.certificate };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  const text = `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
listeners: [{name: kube, address: "127.0.0.1:0", tls: {certFile: tls.crt, keyFile: tls.key}}]
clusters: [{name: default, backends: [{name: a, url: "https://localhost:${judge.port}"}], tls: {caFile: ca.crt}}]`;
  const config = parseConfig(text, join(directory, "watchkeeper.yaml"));
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  return { ...config, cluster: config.clusters[0] };
}

type Led = { readonly cluster: Cluster; readonly config: ConfigForCluster; ask(): Promise<string> };

/** Starts one cluster, and a listener that forwards to it. */
async function lead(judge: JudgingBackend, label = ""): Promise<Led> {
  const config = await configOf(judge);
  const { authority } = await testPki();
  const journal = new Journal(wallClock);
  const cluster = Cluster.of(config, {
    journal,
    bufferLimiter: new BufferLimiter(wallClock, 1 << 30),
    operatorLimits: new OperatorLimits(wallClock, new Journal(wallClock)),
    label,
  });
  if (cluster instanceof Failure) throw new Error(cluster.message);
  assert.is(await cluster.load(), undefined);
  cluster.start();
  const listeners = new Listeners({
    clock: wallClock,
    journal,
    gateOf: () => cluster.gate,
    intake: new Intake({ clock: wallClock, most: 100, isShort: () => false }),
    keepalive: () => config.health.tcpKeepalive,
  });
  undo.push(() => {
    cluster.stop();
    listeners.cut();
    cluster.path.close();
  });
  assert.is(await listeners.reconcile(config.listeners), undefined);
  const port = Number(listeners.addresses.get("kube")?.split(":").at(-1));
  const place = { url: `https://localhost:${port}`, port, ca: authority.certificate };
  await until("a ready backend", () => cluster.isReady("a"));
  return {
    cluster,
    config,
    ask: () => within(5000, "an answer", askH2(place, { headers: { authorization: "Bearer t" } })),
  };
}

async function judged(name: string): Promise<JudgingBackend> {
  const judge = await startJudge(name, pki);
  undo.push(() => judge.stop());
  return judge;
}

test("two of them in one process share nothing, though their backends have one name; one's end is not the other's", async () => {
  const [judge, other] = [await judged("one"), await judged("other")];
  const [led, besides] = [await lead(judge), await lead(other)];
  assert.is(await led.ask(), "200 bearer t");
  assert.is(await besides.ask(), "200 bearer t");
  assert.equal([judge.seen.length, other.seen.length], [1, 1]);
  judge.stop();
  await until("the loss", () => !led.cluster.isReady("a"));
  for (let asked = 0; asked < 20; asked += 1) assert.is(await besides.ask(), "200 bearer t");
  assert.ok(besides.cluster.isReady("a"));
  assert.is(other.seen.length, 21);
});

test("another configuration's backends count when they are taken, and a bad one changes nothing", async () => {
  const [judge, other] = [await judged("one"), await judged("other")];
  const { cluster, config, ask } = await lead(judge);
  const elsewhere = { name: "b", url: "", host: "localhost", port: other.port, isEncrypted: true };
  const next = { ...config, cluster: { ...config.cluster, backends: [elsewhere] } };
  const tls = config.cluster.tls && { ...config.cluster.tls, caFile: "/absent.crt" };
  const refused = await cluster.prepare({ ...next, cluster: { ...next.cluster, tls } });
  assert.match(refused instanceof Failure ? refused.message : "", "absent.crt");
  assert.ok(cluster.isReady("a"));
  const take = await cluster.prepare(next);
  if (take instanceof Failure) throw new Error(take.message);
  assert.ok(cluster.isReady("a"), "not before it is taken");
  take();
  await until("the other backend", () => cluster.isReady("b"));
  assert.is(await ask(), "200 bearer t");
  assert.equal([judge.seen.length, other.seen.length], [0, 1]);
  assert.not(cluster.isReady("a"));
});

test("it knows until when its certificates hold, and how many tunnels are open", async () => {
  const { cluster } = await lead(await judged("one"));
  const purposes = (): string[] => cluster.certificates.map(({ purpose }) => purpose);
  await until("its backend's certificate", () => purposes().includes("backend"));
  assert.equal([purposes()[0], cluster.tunnelCount], ["backend-ca", 0]);
  assert.is(await cluster.settled(), true);
});

test("without its authorities there is none", async () => {
  const config = await configOf(await judged("one"));
  const tls = config.cluster.tls && { ...config.cluster.tls, caFile: "/absent.crt" };
  const parts = {
    journal: new Journal(wallClock),
    bufferLimiter: new BufferLimiter(wallClock, 1 << 30),
    operatorLimits: new OperatorLimits(wallClock, new Journal(wallClock)),
    label: "",
  };
  const outcome = Cluster.of({ ...config, cluster: { ...config.cluster, tls } }, parts);
  assert.match(outcome instanceof Failure ? outcome.message : "", "absent.crt");
});

test.run();
