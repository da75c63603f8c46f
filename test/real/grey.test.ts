/**
 * One of two apiservers is ready, but cannot reach the server of an aggregated API or of a webhook: packets to that
 * server are refused or silently dropped. The tests measure how long the proxy takes to report this apiserver, and what
 * clients notice.
 */
import { readFileSync } from "node:fs";
import { type ClientHttp2Session, connect } from "node:http2";
import { createServer, type Server as HttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ask, order } from "./rig/ask.ts";
import { type Cluster, startCluster, users } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/grey");
const real = testWith(test, clusterNeeds);

const group = "metrics.k8s.io";
const nodes = `/apis/${group}/v1beta1/nodes`;
const configmaps = "/api/v1/namespaces/default/configmaps";
const webhook = "vpol.example.com";
const namedWithinMs = 10_000;
const authorization = `Bearer ${users.admin.token}`;
/** Number of connections to watchkeeper, which binds each of them to one apiserver. */
const clients = 6;

let cluster: Cluster;
let proxy: Proxy;
let far: HttpsServer;
let port = 0;

/** Starts the server of the aggregated API and of the webhook. The webhook allows everything. */
function startFar(host: string, at = 0): Promise<HttpsServer> {
  const pair = cluster.pki.issue({ name: "far", subject: "/CN=far", names: [`IP:${host}`] });
  const files = { cert: readFileSync(pair.certFile), key: readFileSync(pair.keyFile) };
  const server = createServer(files, (received, response) => {
    response.setHeader("content-type", "application/json");
    let body = "";
    received.on("data", (chunk: Buffer) => (body += chunk.toString()));
    received.on("end", () => response.end(JSON.stringify(answerTo(received.url ?? "", body))));
  });
  return new Promise((resolve) => server.listen(at, host, () => resolve(server)));
}

function answerTo(url: string, body: string): object {
  if (url.startsWith("/validate")) {
    const review = JSON.parse(body) as { request: { uid: string } };
    const response = { uid: review.request.uid, allowed: true };
    return { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response };
  }
  if (url.startsWith(nodes))
    return { kind: "NodeMetricsList", apiVersion: `${group}/v1beta1`, metadata: {}, items: [] };
  const resources = [{ name: "nodes", namespaced: false, kind: "NodeMetrics", verbs: ["get", "list"] }];
  return { kind: "APIResourceList", apiVersion: "v1", groupVersion: `${group}/v1beta1`, resources };
}

async function arrange(): Promise<void> {
  const host = new URL(cluster.etcdUrl).hostname;
  far = await startFar(host);
  ({ port } = far.address() as AddressInfo);
  const make = (path: string, body: unknown): Promise<string> =>
    order(cluster.admin, { method: "POST", path, body });
  const spec = { type: "ExternalName", externalName: host, ports: [{ port }] };
  await make("/api/v1/namespaces/default/services", { metadata: { name: "far" }, spec });
  await make("/apis/apiregistration.k8s.io/v1/apiservices", {
    metadata: { name: `v1beta1.${group}` },
    spec: {
      group,
      version: "v1beta1",
      groupPriorityMinimum: 1000,
      versionPriority: 10,
      insecureSkipTLSVerify: true,
      service: { name: "far", namespace: "default", port },
    },
  });
  const rule = { operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"] };
  await make("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {
    metadata: { name: "grey" },
    webhooks: [
      {
        name: webhook,
        clientConfig: {
          url: `https://${host}:${port}/validate`,
          caBundle: readFileSync(cluster.caFile).toString("base64"),
        },
        rules: [rule],
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "default" } },
        failurePolicy: "Fail",
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        timeoutSeconds: 1,
      },
    ],
  });
}

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2 });
  await arrange();
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
  await proxy.settled(2);
  for (const { url } of cluster.apiservers)
    for (const deadline = Date.now() + 30_000; ; await sleep(200)) {
      if ((await ask({ ...cluster.admin, url }, { path: nodes })).status === 200) break;
      if (Date.now() > deadline) throw new Error(`${url} does not serve ${group}`);
    }
});

test.after(async () => {
  if (!real.canRun) return;
  far.closeAllConnections();
  far.close();
  await proxy.stop();
  await cluster.stop();
});

type Answer = { readonly at: number; readonly ms: number; readonly status: number; readonly text: string };

function request(on: ClientHttp2Session, head: Record<string, string>, body?: string): Promise<Answer> {
  const at = Date.now();
  const stream = on.request({ authorization, "content-type": "application/json", ...head });
  let text = "";
  let status = 0;
  stream.on("response", (fields) => (status = Number(fields[":status"])));
  stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  stream.end(body);
  return new Promise((resolve) => {
    stream.on("error", () => {});
    stream.on("close", () => resolve({ at, ms: Date.now() - at, status, text }));
  });
}

function create(on: ClientHttp2Session, number: number): Promise<Answer> {
  const body = JSON.stringify({ metadata: { name: `object-${Date.now()}-${number}` } });
  return request(on, { ":method": "POST", ":path": configmaps }, body);
}

/**
 * The clients of the present test. They are stopped even if the test fails, because open sockets keep the process
 * alive.
 */
const traffics = new Set<Traffic>();
test.after.each(() => {
  for (const one of traffics) one.stop();
});

/** Clients that send a request every `everyMs` milliseconds until they are stopped. */
class Traffic {
  readonly answers: Answer[] = [];
  readonly #sessions: ClientHttp2Session[];
  readonly #timers: NodeJS.Timeout[];

  constructor(everyMs: number, send: (on: ClientHttp2Session, number: number) => Promise<Answer>) {
    this.#sessions = Array.from({ length: clients }, () =>
      connect(proxy.url, { ca: readFileSync(cluster.caFile) }).on("error", () => {}),
    );
    traffics.add(this);
    let number = 0;
    this.#timers = this.#sessions.map((one) =>
      setInterval(() => {
        number += 1;
        void send(one, number).then((answer) => this.answers.push(answer));
      }, everyMs),
    );
  }

  stop(): void {
    traffics.delete(this);
    for (const timer of this.#timers) clearInterval(timer);
    for (const one of this.#sessions) one.destroy();
  }

  since(at: number): string {
    const later = this.answers.filter((answer) => answer.at >= at);
    const bad = later.filter(({ status }) => status < 200 || status >= 300);
    const slowest = Math.max(0, ...later.map(({ ms }) => ms));
    const [first] = bad;
    const text = first === undefined ? "" : `, first: ${first.status} ${first.text.slice(0, 120).trim()}`;
    return `${bad.length} of ${later.length} failed, slowest ${slowest} ms${text}`;
  }
}

async function metric(row: RegExp): Promise<boolean> {
  return row.test(await (await fetch(`${proxy.metricsUrl}/metrics`)).text());
}

async function msUntil(row: RegExp, isThere: boolean, withinMs: number): Promise<number> {
  const startedAt = Date.now();
  while ((await metric(row)) !== isThere) {
    if (Date.now() - startedAt > withinMs) throw new Error(`${row} is not ${isThere} after ${withinMs} ms`);
    await sleep(100);
  }
  return Date.now() - startedAt;
}

const isUnreachable = new RegExp(
  `^watchkeeper_api_unreachable\\{backend="api-1",group="${group}"\\} 1$`,
  "m",
);
const isFailing = /^watchkeeper_incident_active\{kind="backend-webhook-failing",backend="api-1"\} 1$/m;
const isReady = /^watchkeeper_backend_ready\{backend="api-1"\} 1$/m;
const isOtherNamed = /^watchkeeper_(api_unreachable|incident_active)\{.*backend="api-0".*\} 1$/m;

/**
 * Duration in minutes of the test without a fault. The long form is WATCHKEEPER_GREY_MINUTES=30 node
 * test/real/grey.test.ts
 */
const healthyMinutes = Number(process.env["WATCHKEEPER_GREY_MINUTES"] ?? 0.5);

real("while all is well, and while the server restarts for both, no apiserver is named", async () => {
  const reads = new Traffic(250, (on) => request(on, { ":path": nodes }));
  const writes = new Traffic(500, create);
  const startedAt = Date.now();
  for (const until = startedAt + healthyMinutes * 60_000; Date.now() < until; ) {
    await sleep(Math.min(50_000, Math.max(0, until - 10_000 - Date.now())));
    far.closeAllConnections();
    await new Promise((resolve) => far.close(resolve));
    await sleep(2000);
    far = await startFar(new URL(cluster.etcdUrl).hostname, port);
    await sleep(8000);
  }
  const counted = await (await fetch(`${proxy.metricsUrl}/metrics`)).text();
  const incidents =
    counted.match(/^watchkeeper_incidents_total\{.*(api|webhook|delayed).*\} [1-9].*$/gm) ?? [];
  figure(`${healthyMinutes} min: reads ${reads.since(startedAt)}; writes ${writes.since(startedAt)}`);
  assert.equal(incidents, []);
  reads.stop();
  writes.stop();
});

/**
 * Sends reads directly to an apiserver and records whether it answers 200. Both apiservers write the same condition
 * Available of the APIService. While the apiserver whose packets are refused has set the condition to False, the other
 * apiserver rejects all reads too. Then no proxy can help, and nothing shows which apiserver is the cause.
 */
class DirectReads {
  readonly #answers: { readonly at: number; readonly isServed: boolean }[] = [];
  readonly #stop = new AbortController();

  constructor(url: string) {
    void this.#read(url);
  }

  async #read(url: string): Promise<void> {
    for (; !this.#stop.signal.aborted; await sleep(100)) {
      const answer = await ask({ ...cluster.admin, url }, { path: nodes }).catch(() => undefined);
      this.#answers.push({ at: Date.now(), isServed: answer?.status === 200 });
    }
  }

  /** True if the reads just before and just after this moment were answered with 200. */
  isServedAt(at: number): boolean {
    const after = this.#answers.findIndex((answer) => answer.at >= at);
    return [after - 1, after].every((index) => this.#answers[index]?.isServed);
  }

  /** The share of reads since `at` that were answered with 200, from 0 to 1. */
  shareSince(at: number, until = Number.POSITIVE_INFINITY): number {
    const of = this.#answers.filter((answer) => answer.at >= at && answer.at < until);
    return of.filter(({ isServed }) => isServed).length / Math.max(1, of.length);
  }

  stop(): void {
    this.#stop.abort();
  }
}

for (const how of ["refused", "lost"] as const)
  real(`an API whose packets from one apiserver are ${how}: named in time, read from the other`, async () => {
    const traffic = new Traffic(500, (on) => request(on, { ":path": nodes }));
    await sleep(3000);
    const startedAt = Date.now();
    cluster.apiserver(1).cutOff(port, how);
    const other = cluster.apiserver(0).url;
    const direct = new DirectReads(other);
    const namedMs = await msUntil(isUnreachable, true, 60_000);
    const namedAt = Date.now();
    await sleep(10_000);
    direct.stop();
    const servedBefore = direct.shareSince(startedAt, namedAt);
    const served = direct.shareSince(namedAt);
    const percent = (share: number): number => Math.round(100 * share);
    figure(
      `${how}: the other apiserver itself served ${percent(servedBefore)} % before, ${percent(served)} % after`,
    );
    figure(`${how}: named after ${namedMs} ms; before: ${traffic.since(startedAt)}`);
    figure(`${how}: since it is named: ${traffic.since(namedAt)}`);
    // The apiservers differ only while the other one serves the API, so only that share of the time counts.
    assert.ok(
      namedMs * servedBefore <= namedWithinMs,
      `${namedMs} ms, of which ${percent(servedBefore)} % count`,
    );
    assert.ok(await metric(isReady), "it is ready for the rest");
    assert.not(await metric(isOtherNamed));
    // A read that the other apiserver itself would have refused shows nothing.
    const able = traffic.answers.filter(({ at }) => at >= namedAt && direct.isServedAt(at));
    const answered = able.filter(({ status }) => status === 200).length;
    figure(`${how}: ${answered} of ${able.length} reads were answered while the other apiserver served`);
    assert.ok(able.length > 10 && answered >= 0.8 * able.length, `${answered} of ${able.length} reads`);
    cluster.apiserver(1).heal();
    figure(`${how}: reached again after ${await msUntil(isUnreachable, false, 90_000)} ms`);
    traffic.stop();
  });

real("a webhook that one apiserver cannot call is named in time", async () => {
  const traffic = new Traffic(500, create);
  await sleep(3000);
  const startedAt = Date.now();
  cluster.apiserver(1).cutOff(port, "lost");
  const namedMs = await msUntil(isFailing, true, 30_000);
  figure(`webhook: named after ${namedMs} ms; ${traffic.since(startedAt)}`);
  assert.ok(namedMs <= namedWithinMs, `${namedMs} ms`);
  assert.ok(await metric(isReady), "it is ready for the rest");
  assert.not(await metric(/kind="backend-webhook-failing",backend="api-0"\} 1/));
  cluster.apiserver(1).heal();
  traffic.stop();
});

test.run();
