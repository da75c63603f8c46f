import { once } from "node:events";
import http2 from "node:http2";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { createAuthority } from "../../../src/ops/pki/pki.ts";
import { eventually, type SeveralClusters, startClusters, type ToldCluster } from "../../support/clusters.ts";
import {
  askH1,
  frontProxyPki,
  type JudgingBackend,
  shake,
  startJudge,
  tlsOptions,
} from "../../support/front-proxy.ts";
import { until } from "../../support/h1.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/cluster/clusters");

const pki = await frontProxyPki();
const others = await createAuthority({ name: "others", clock: wallClock });
const alice = pki.clients.issue({ name: "alice", usage: "client" });
const bob = others.issue({ name: "bob", usage: "client" });
const files = {
  "clients.crt": pki.clients.certificate,
  "others.crt": others.certificate,
  "front-proxy.crt": pki.pair.certificate,
  "front-proxy.key": pki.pair.key,
};
const bearer = { authorization: "Bearer t" };

let scene: SeveralClusters;
const undo: (() => void)[] = [];
test.after.each(async () => {
  await scene.stop();
  for (const step of undo.splice(0)) step();
});

async function judged(name: string): Promise<JudgingBackend> {
  const judge = await startJudge(name, pki);
  undo.push(() => judge.stop());
  return judge;
}

const told = (name: string, judge: JudgingBackend, more: Partial<ToldCluster> = {}): ToldCluster => ({
  name,
  ports: [judge.port],
  ...more,
});

type Two = { readonly eu: JudgingBackend; readonly us: JudgingBackend; readonly all: readonly ToldCluster[] };

async function two(options: Parameters<typeof startClusters>[1] = {}): Promise<Two> {
  const [eu, us] = [await judged("eu"), await judged("us")];
  const all = [told("eu", eu), told("us", us)];
  scene = await startClusters(all, options);
  await scene.readyAt("eu/b0");
  await scene.readyAt("us/b0");
  return { eu, us, all };
}

test("the host name that a client sends selects the cluster; a name that no cluster has selects the listener's", async () => {
  const { eu, us } = await two();
  assert.is(await scene.ask("us", { headers: bearer }), "200 bearer t");
  assert.equal([eu.seen.length, us.seen.length], [0, 1]);
  assert.is(await scene.ask("eu", { headers: bearer }), "200 bearer t");
  assert.is(
    await scene.ask("", { servername: "localhost", authority: "10.0.0.1", headers: bearer }),
    "200 bearer t",
  );
  assert.equal([eu.seen.length, us.seen.length], [2, 1]);
  const asking = { servername: "us.test", authority: "us.test", headers: bearer };
  assert.is(await within(20_000, "an answer", askH1(scene.place, asking)), "200 bearer t");
  assert.equal([eu.seen.length, us.seen.length], [2, 2]);
});

test("a session is one cluster's: another one's host is asked for in vain (421), with one policy as with two", async () => {
  const { eu, us } = await two();
  const asking = { servername: "eu.test", authority: "us.test", headers: bearer };
  assert.match(await scene.ask("", asking), /^421 /);
  assert.match(await scene.ask("", { ...asking, servername: "us.test", authority: "US.test.:443" }), /^200 /);
  assert.match(await within(20_000, "an answer", askH1(scene.place, asking)), /^421 /);
  assert.equal([eu.seen.length, us.seen.length], [0, 1]);
});

test("each has its own authorities, credentials and policy for clients' certificates", async () => {
  const [eu, us] = [await judged("eu"), await judged("us")];
  const vouching = {
    tls: ", frontProxy: {certFile: front-proxy.crt, keyFile: front-proxy.key}",
    hostTls: ", clientCAFile: clients.crt",
    host: ", identity: {clientCerts: FrontProxy}",
  };
  scene = await startClusters([told("eu", eu), told("us", us, vouching)], { files });
  await scene.readyAt("us/b0");
  await scene.readyAt("eu/b0");
  assert.is(await scene.ask("us", { pair: alice }), "200 front-proxy alice ");
  assert.match(await scene.ask("eu", { pair: alice }), /^403 .*takes no client certificates/);
  assert.match(await scene.ask("us", { pair: bob }), /^401 /);
  assert.ok(
    eu.sockets.every((shown) => shown === ""),
    "the front-proxy certificate is shown to its own only",
  );
  assert.ok(us.sockets.includes("front-proxy-client"));
});

test("the CA of one cluster's backends is not valid for another's", async () => {
  const [eu, us] = [await judged("eu"), await judged("us")];
  scene = await startClusters([told("eu", eu), told("us", us, { ca: others.certificate })]);
  await scene.readyAt("eu/b0");
  await until("distrust", () =>
    scene.entries.some((entry) => entry.kind === "backend.probed" && entry.backend === "us/b0"),
  );
  assert.match(await scene.ask("us", { headers: bearer }), /^503 /);
  assert.is(await scene.ask("eu", { headers: bearer }), "200 bearer t");
  assert.equal([eu.seen.length, us.seen.length], [1, 0]);
});

test("what one finds is its own, and what it looks for is told as its own", async () => {
  const [eu, us] = [await judged("eu"), await judged("us")];
  const list = (name: string, judge: JudgingBackend): string =>
    `[{name: ${name}, url: "https://localhost:${judge.port}"}]`;
  scene = await startClusters(
    [told("eu", eu), { name: "us", ports: [], more: ", discovery: {type: File, file: list.yaml}" }],
    { files: { "list.yaml": list("b9", us) } },
  );
  await scene.readyAt("us/b9");
  await scene.readyAt("eu/b0");
  const { items } = await scene.get("backends");
  assert.equal(
    (items as { name: string }[]).map(({ name }) => name),
    ["eu/b0", "us/b9"],
  );
  assert.is(await scene.ask("us", { headers: bearer }), "200 bearer t");
  assert.equal([eu.seen.length, us.seen.length], [0, 1]);
  assert.match(await scene.metrics(), 'watchkeeper_discovery_backends{cluster="us"} 1');
  const found = scene.entries.find(({ kind }) => kind === "discovery.changed");
  assert.equal(found, {
    kind: "discovery.changed",
    from: "File",
    added: ["us/b9"],
    removed: [],
    cluster: "us",
  });
});

test("all is told with the cluster's name before it", async () => {
  const { us } = await two();
  assert.is(await scene.ask("us", { headers: bearer }), "200 bearer t");
  us.stop();
  await until("the end of us", () =>
    scene.entries.some(
      ({ kind, cluster }) => kind === "incident.opened" || (kind === "backend.changed" && cluster === "us"),
    ),
  );
  const metrics = await scene.metrics();
  assert.match(metrics, /watchkeeper_backend_ready\{backend="eu\/b0",cluster="eu"\} 1/);
  assert.match(
    metrics,
    /watchkeeper_requests_total\{verb="LIST",code="200",backend="us\/b0",cluster="us"\} 1/,
  );
  assert.match(metrics, /purpose="backend-ca",name="us\/backend-ca",cluster="us"/);
  const incidents =
    metrics.match(/^watchkeeper_incident(s_total|_active)\{.*backend="us\/b0".*\} 1$/gm) ?? [];
  assert.ok(incidents.every((line) => line.includes(',cluster="us"')));
  const { items } = await scene.get("backends");
  assert.equal(
    (items as { name: string }[]).map(({ name }) => name),
    ["eu/b0", "us/b0"],
  );
  const clients = (await scene.get("clients?cluster=us"))["items"] as { cluster: string }[];
  assert.equal(
    clients.map(({ cluster }) => cluster),
    ["us"],
  );
});

test("where all backends of one are gone its clients are told 503, and the other's notice nothing", async () => {
  const { eu, us } = await two();
  us.stop();
  await eventually("the loss", async () =>
    /backend_ready\{backend="us\/b0",cluster="us"\} 0/.test(await scene.metrics()),
  );
  const [refused, ...answers] = await Promise.all([
    scene.ask("us", { headers: bearer }),
    ...Array.from({ length: 20 }, () => scene.ask("eu", { headers: bearer })),
  ]);
  assert.match(refused, /^503 /);
  assert.ok(answers.every((answer) => answer === "200 bearer t"));
  assert.is(eu.seen.length, 20);
  const probe = await fetch(`http://${scene.running.adminAddress}/readyz`);
  assert.is(probe.status, 200, "eu's clients would lose by it");
  const active = (await scene.get("incidents?state=active&kind=all-backends-down"))["items"] as {
    subject: string;
  }[];
  assert.equal(
    active.map(({ subject }) => subject),
    ["us"],
  );
  assert.match(await scene.metrics(), /requests_total\{verb="LIST",code="503",backend="us\//);
});

test("a reload brings a cluster, changes one and takes one away, and the others' sessions live on", async () => {
  const { eu, us, all } = await two({ drainTimeout: "400ms" });
  const socket = await shake({
    ...tlsOptions(scene.place, undefined),
    servername: "us.test",
    ALPNProtocols: ["h2"],
  });
  const session = http2.connect("https://us.test", { createConnection: () => socket });
  session.on("error", () => {});
  undo.push(() => session.destroy());
  const watch = session.request({ ":path": "/api/v1/pods?watch=1", ...bearer });
  await once(watch, "response");
  const ap = await judged("ap");
  assert.equal(await scene.reload([...all, told("ap", ap)]), []);
  await scene.readyAt("ap/b0");
  assert.is(await scene.ask("ap", { headers: bearer }), "200 bearer t");
  const moved = await judged("moved");
  assert.equal(
    await scene.reload([
      ...all,
      told("ap", moved, { more: ", connectionPool: {minIdleConnections: 2, perClient: true}" }),
    ]),
    ["clusters.ap.connectionPool.perClient"],
  );
  ap.stop();
  await eventually("the other backend", async () => {
    await scene.ask("ap", { headers: bearer });
    return moved.seen.length > 0;
  });
  assert.equal(await scene.reload(all), []);
  assert.match(await scene.ask("ap", { headers: bearer }), "200", "no cluster's name now, so the listener's");
  await until("the end of ap", () =>
    scene.entries.some(({ kind, cluster }) => kind === "cluster.removed" && cluster === "ap"),
  );
  const metrics = await scene.metrics();
  assert.not.match(metrics, 'backend_ready{backend="ap/');
  assert.match(
    metrics,
    /requests_total\{verb="LIST",code="200",backend="other",cluster="other"\}/,
    "counters never fall",
  );
  let events = 0;
  watch.on("data", () => (events += 1));
  await until("an event", () => events > 0);
  assert.not.ok(watch.destroyed, "the watch of us has seen nothing of it");
  assert.ok(eu.seen.length > 0 && us.seen.length > 0);
});

test("one that comes back while its clients leave is the same as before", async () => {
  const { us, all } = await two({ drainTimeout: "2s" });
  const [eu] = all;
  if (eu === undefined) return;
  const connections = us.sockets.length;
  assert.equal(await scene.reload([eu]), []);
  assert.equal(await scene.reload(all), []);
  assert.is(await scene.ask("us", { headers: bearer }), "200 bearer t");
  await new Promise((resolve) => setTimeout(resolve, 2500));
  assert.is(await scene.ask("us", { headers: bearer }), "200 bearer t");
  assert.not.ok(scene.entries.some(({ kind }) => kind === "cluster.removed" || kind === "cluster.added"));
  assert.ok(us.sockets.length <= connections + 2, "its connections are the same");
});

test("a reload that fails anywhere changes no cluster", async () => {
  const { us, all } = await two();
  const ap = await judged("ap");
  const bad = told("ap", ap, { tls: ", frontProxy: {certFile: absent.crt, keyFile: absent.key}" });
  const outcome = await scene.reload([...all, bad]);
  assert.match(outcome instanceof Failure ? outcome.message : "", /^cluster ap: .*absent\.crt/);
  assert.is(await scene.ask("us", { headers: bearer }), "200 bearer t");
  assert.equal([us.seen.length, ap.seen.length], [1, 0]);
  assert.not.ok(scene.entries.some(({ kind }) => kind === "cluster.added"));
});

test("a passthrough gives each connection to the cluster of its route, and to none of another's backends", async () => {
  const routes =
    "{serverNames: [eu.test], cluster: eu}, {serverNames: [us.test], cluster: us, backends: [b0]}";
  const listeners = `  - {name: nodes, address: "127.0.0.1:0", mode: Passthrough, routes: [${routes}]}`;
  const { eu, us } = await two({ listeners });
  const port = Number(scene.running.addresses.get("nodes")?.split(":").at(-1));
  for (const servername of ["us.test", "eu.test", "us.test"]) {
    // In passthrough mode the backends terminate TLS, and their certificate is for localhost.
    const lax = { checkServerIdentity: () => undefined, servername, ALPNProtocols: ["h2"] };
    const socket = await shake({ ...tlsOptions({ ...scene.place, port }, undefined), ...lax });
    const session = http2.connect("https://localhost", { createConnection: () => socket });
    const stream = session.request({ ":path": "/api", ...bearer });
    await once(stream, "response");
    session.destroy();
  }
  assert.equal([eu.seen.length, us.seen.length], [1, 2]);
  const options = { ...tlsOptions({ ...scene.place, port }, undefined), servername: "ap.test" };
  const refused = await shake(options).then(
    () => "let in",
    (error: Error) => error.message,
  );
  assert.match(refused, /unrecognized name/i);
});

test("an operator means a backend by its cluster and its name, over the API as in the journal", async () => {
  await two();
  const post = async (path: string): Promise<string> => {
    const headers = { "content-type": "application/json", "x-watchkeeper-operator": "test" };
    const options = { method: "POST", headers, body: "{}" };
    const answer = await fetch(`http://${scene.running.apiAddress}/api/v1/${path}`, options);
    return `${answer.status} ${await answer.text()}`;
  };
  assert.match(await post("backends/us%2Fb0/drain"), /^409 .*no other backend is ready/);
  assert.match(await post("backends/b0/drain"), /^404 /);
});

test.run();
