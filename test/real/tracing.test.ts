/**
 * Traces of requests through watchkeeper to kube-apiservers, received by the OpenTelemetry Collector. The span of each
 * request has the Audit-ID of the request's lines in the audit log. The span of a watch contains the watch's migration.
 */
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { freePort } from "../support/free-port.ts";
import { ask } from "./rig/ask.ts";
import { Child } from "./rig/child.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { runFolder } from "./rig/folder.ts";
import { clusterNeeds, figure, pathOf, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";
import { until } from "./rig/until.ts";

const test = suite("real/tracing");
const real = testWith(test, [...clusterNeeds, "collector"]);

let cluster: Cluster;
let collector: Child;
let proxy: Proxy;
let auditFile = "";

const policy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  rules: [{ level: "Metadata", users: ["alice"] }, { level: "None" }],
};

test.before(async () => {
  if (!real.canRun) return;
  // A separate folder, because the apiservers need the policy file when they start.
  const { folder: own } = runFolder();
  auditFile = join(own, "audit.log");
  writeFileSync(join(own, "policy.json"), JSON.stringify(policy));
  const flags = [
    `--audit-policy-file=${join(own, "policy.json")}`,
    `--audit-log-path=${auditFile}`,
    // All apiservers append to one file, so none may rename it.
    "--audit-log-maxsize=10000",
  ];
  cluster = await startCluster({ apiservers: 2, flags });
  const { folder, pki } = cluster;
  const address = `127.0.0.1:${await freePort()}`;
  collector = new Child({
    name: "collector",
    command: pathOf("collector"),
    args: [address],
    logFile: join(folder, "collector.log"),
  });
  const endpoint = `http://${address}/v1/traces`;
  await collector.ready(20_000, () =>
    fetch(endpoint, { method: "POST" }).then(
      () => true,
      () => false,
    ),
  );
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  const tracing = { endpoint, samplingRatePerMillion: 1_000_000 };
  proxy = await Proxy.start({ folder, pki, backends, config: { tracing } });
  await proxy.settled(2);
});

test.after(async () => {
  if (!real.canRun) return;
  await proxy.stop();
  await collector.stop();
  await cluster.stop();
});

type Attribute = {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: string };
};
type WrittenSpan = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
};
type Span = WrittenSpan & { readonly of: Readonly<Record<string, string>> };
type Batch = {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly WrittenSpan[] }[];
  }[];
};

/** Returns the spans that the collector has printed. */
function collected(): readonly Span[] {
  const lines = readFileSync(collector.logFile, "utf8")
    .split("\n")
    .slice(0, -1)
    .filter((line) => line.startsWith("{"));
  return lines
    .flatMap((line) => (JSON.parse(line) as Batch).resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
    .map((span) => ({
      ...span,
      of: Object.fromEntries(
        span.attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? ""]),
      ),
    }));
}

type AuditLine = {
  readonly auditID: string;
  readonly stage: string;
  readonly verb: string;
  readonly requestURI: string;
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
  readonly responseStatus?: { readonly code: number };
};

function audited(): readonly AuditLine[] {
  return readFileSync(auditFile, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as AuditLine);
}

const alice = "alice-token-of-the-rig";

function ofAlice(): Parameters<typeof ask>[0] {
  return { url: proxy.url, caFile: cluster.caFile, token: alice };
}

/** Trace id and span id of the client's own span, as an instrumented client sends them. */
const parent = { traceId: randomBytes(16).toString("hex"), spanId: randomBytes(8).toString("hex") };

/** Opens a watch of ConfigMaps from this version, as part of the client's own span. `end` closes its socket. */
function watchFrom(version: string): { readonly opened: Promise<number>; readonly end: () => void } {
  const { promise: opened, resolve, reject } = Promise.withResolvers<number>();
  const sent = request(
    new URL(`/api/v1/configmaps?watch=1&timeoutSeconds=300&resourceVersion=${version}`, proxy.url),
    {
      ca: readFileSync(cluster.caFile),
      agent: false,
      headers: {
        authorization: `Bearer ${alice}`,
        traceparent: `00-${parent.traceId}-${parent.spanId}-01`,
      },
    },
    (response) => {
      response.on("error", () => {});
      response.resume();
      resolve(response.statusCode ?? 0);
    },
  );
  sent.on("error", reject).end();
  opened.catch(() => {});
  return { opened, end: () => sent.destroy() };
}

real("the spans of requests and of a moved watch join the audit log by their Audit-IDs", async () => {
  const list = JSON.parse((await ask(ofAlice(), { path: "/api/v1/configmaps?limit=1" })).text) as {
    metadata: { resourceVersion: string };
  };
  const open = watchFrom(list.metadata.resourceVersion);
  assert.is(await open.opened, 200, proxy.tail());
  for (let times = 0; times < 20; times++) {
    const { status } = await ask(ofAlice(), { path: "/api/v1/namespaces/default/configmaps?limit=5" });
    assert.is(status, 200);
  }
  const { status } = await ask(ofAlice(), { path: "/api/v1/secrets?watch=0&token=geheim-geheim" });
  assert.ok(status === 200 || status === 403, `${status}`);
  const isWatched = (): boolean => audited().some(({ verb }) => verb === "watch");
  await until(() => "a watch in the audit log", isWatched, 20_000);
  // Both apiservers are restarted one after the other, so the one that has the watch is among them.
  for (const apiserver of cluster.apiservers) {
    await apiserver.restart();
    await proxy.settled(2, 60_000);
  }
  open.end();
  const watched = (): Span | undefined =>
    collected().find(({ of, kind }) => kind === 2 && of["watchkeeper.verb"] === "WATCH");
  await until(
    () => "the watch's span at the collector",
    () => watched() !== undefined,
    20_000,
  );
  const spans = collected();
  const roots = spans.filter(({ kind, of }) => kind === 2 && of["url.path"]?.startsWith("/api/v1/") === true);
  const lines = audited();
  const byId = Map.groupBy(lines, ({ auditID }) => auditID);
  assert.ok(roots.length >= 22, `${roots.length} requests`);
  for (const root of roots) {
    const own = byId.get(root.of["audit-id"] ?? "") ?? [];
    assert.ok(own.length > 0, `No audit line for ${root.of["url.path"]} ${root.of["audit-id"]}`);
    assert.ok(
      own.every(({ requestURI }) => requestURI.split("?")[0] === root.of["url.path"]),
      JSON.stringify(own),
    );
    const complete = own.find(({ stage }) => stage === "ResponseComplete");
    if (root.of["watchkeeper.verb"] !== "WATCH")
      assert.is(String(complete?.responseStatus?.code), root.of["http.response.status_code"]);
    const [begin, end] = [root.startTimeUnixNano, root.endTimeUnixNano].map((text) => Number(text) / 1e6);
    const received = Date.parse(own[0]?.requestReceivedTimestamp ?? "");
    assert.ok(received >= (begin ?? 0) - 5 && received <= (end ?? 0) + 5, "the apiserver's times are within");
    const parts = spans.filter(({ parentSpanId }) => parentSpanId === root.spanId);
    assert.ok(
      parts.some(({ kind }) => kind === 3),
      "an attempt",
    );
    assert.ok(parts.every(({ traceId }) => traceId === root.traceId));
  }
  const root = watched();
  assert.equal([root?.traceId, root?.parentSpanId], [parent.traceId, parent.spanId]);
  const moves = spans.filter(
    ({ name, parentSpanId }) => name === "watchkeeper.move" && parentSpanId === root?.spanId,
  );
  assert.ok(moves.length >= 1, proxy.tail());
  // The watch's lines in the audit log: one request at each apiserver that served the watch, all with the same
  // Audit-ID.
  const ofWatch = byId.get(root?.of["audit-id"] ?? "") ?? [];
  const received = ofWatch.filter(({ stage }) => stage === "RequestReceived").length;
  assert.ok(received >= 2, `${received} requests of the watch at the apiservers`);
  assert.not.match(JSON.stringify(spans), /geheim|token/);
  figure(
    `${roots.length} request spans joined with ${lines.length} audit lines; the watch's span has ${moves.length} move(s), and ${received} requests in the audit log`,
  );
});

test.run();
