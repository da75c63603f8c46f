/**
 * Sends every request twice, directly to an apiserver and through the proxy to the same apiserver. The two responses
 * must be equal, except for the differences that differential/compare.ts lists. DIFFERENTIAL_SEED and
 * DIFFERENTIAL_COUNT select other or more requests.
 */
import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { within } from "../support/within.ts";
import { type Case, casesFor, refusals } from "./differential/cases.ts";
import { differences, namespaces } from "./differential/compare.ts";
import { startEcho } from "./differential/echo.ts";
import { type Reply, type Request, send, type Target } from "./differential/send.ts";
import { ask, order } from "./rig/ask.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/differential");
const real = testWith(test, clusterNeeds);

const seed = Number(process.env["DIFFERENTIAL_SEED"] ?? 20_261_120);
const count = Number(process.env["DIFFERENTIAL_COUNT"] ?? 1_200);

let cluster: Cluster;
let proxy: Proxy;
let echo: Server;
let direct: Target;
let proxied: Target;

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 1, pods: true });
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
  const ca = readFileSync(cluster.caFile);
  direct = { url: cluster.apiserver(0).url, ca };
  proxied = { url: proxy.url, ca };
  echo = startEcho(cluster.node.forwardPort, cluster.node.address);
  for (const namespace of Object.values(namespaces)) await furnish(namespace);
});

test.after(async () => {
  if (!real.canRun) return;
  echo.close();
  echo.closeAllConnections();
  await proxy.stop();
  await cluster.stop();
});

/** Creates the same objects for both sides. */
async function furnish(namespace: string): Promise<void> {
  const create = (path: string, body: object): Promise<string> =>
    order(cluster.admin, { method: "POST", path, body });
  await create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  const base = `/api/v1/namespaces/${namespace}`;
  for (let number = 0; number < 10; number++) {
    const metadata = { name: `fixed-${number}`, labels: { group: number % 2 === 0 ? "even" : "odd" } };
    await create(`${base}/configmaps`, { metadata, data: { number: String(number) } });
    await create(`${base}/secrets`, { metadata, stringData: { number: String(number) } });
  }
  // The apiserver compresses responses of more than 128 KiB for clients that accept gzip.
  await create(`${base}/configmaps`, {
    metadata: { name: "large" },
    data: { text: "large ".repeat(60_000) },
  });
  const containers = [{ name: "main", image: "none" }];
  const spec = { nodeName: cluster.node.name, hostNetwork: true, containers };
  // Managed fields are sorted by time (in seconds) and then by the manager's name. This name comes before "kwok", so
  // the order is the same whether or not both write within one second.
  await create(`${base}/pods?fieldManager=furnish`, { metadata: { name: "echo" }, spec });
  const template = { metadata: { labels: { app: "web" } }, spec: { containers } };
  await create(`/apis/apps/v1/namespaces/${namespace}/deployments`, {
    metadata: { name: "web" },
    spec: { replicas: 2, selector: { matchLabels: { app: "web" } }, template },
  });
  const path = `${base}/pods/http:echo:${cluster.node.forwardPort}/proxy/echo`;
  for (let tries = 0; (await ask(cluster.admin, { path })).status !== 200; tries++) {
    if (tries > 50) throw new Error("Cannot reach the echo pod through the apiserver");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Returns the request as one side sends it, with the side's namespace. */
function forSide(asked: Case, namespace: string): Request {
  const place = (text: string): string => text.replaceAll("{ns}", namespace);
  const { protocol, method, path, body } = asked;
  const fields = asked.fields.map(([name, value]) => [name, place(value)] as const);
  const placed = body === undefined ? {} : { body: Buffer.from(place(body.toString("latin1")), "latin1") };
  return { protocol, method, path: place(path), fields, ...placed };
}

const nothing: Reply = { early: [], status: 0, fields: [], body: Buffer.alloc(0), trailers: [], ended: "" };

/** A request without a response counts as an outcome too: both sides must agree on it. */
function attempt(target: Target, request: Request): Promise<Reply> {
  const answer = within(8_000, "an answer", send(target, request));
  return answer.catch((error: Error) => ({ ...nothing, ended: error.message }));
}

/** Number of responses for each status, because 1,200 times 404 would prove little. */
const statuses = new Map<number, number>();

async function compareOnce(asked: Case): Promise<string[]> {
  const one = await attempt(direct, forSide(asked, namespaces.direct));
  statuses.set(one.status, (statuses.get(one.status) ?? 0) + 1);
  const other = await attempt(proxied, forSide(asked, namespaces.proxied));
  return differences(asked, one, other);
}

/**
 * Requests that only read are repeated before a difference counts, because leases, ages and compactions change in the
 * meantime. An upload over HTTP/1.1 without a response is repeated too: a server that answers early and closes the
 * connection may destroy its own response (RFC 9112 §9.6). That happens on either side, and several times in a row on a
 * busy machine.
 */
async function compare(asked: Case): Promise<string[]> {
  const mayLoseAnswer = asked.protocol === "h1" && (asked.body?.length ?? 0) > 100_000;
  let found = await compareOnce(asked);
  for (let again = 0; found.length > 0 && again < 10; again++) {
    const lost = mayLoseAnswer && found.some((line) => /^ended: .*(ECONNRESET|EPIPE)/.test(line));
    if (!lost && (asked.mutates || again >= 3)) break;
    found = await compareOnce(asked);
  }
  return found;
}

function describe(asked: Case, number: number): string {
  const { protocol, method, path, fields, body } = asked;
  const shown = fields.map(([name, value]) => `${name}: ${value.slice(0, 60)}`).join(" | ");
  return `#${number} ${asked.kind} ${protocol} ${method} ${path.slice(0, 150)} [${shown}] ${body?.length ?? 0} bytes`;
}

real(`${count} requests (seed ${seed}) get the same answer directly and through the proxy`, async () => {
  const failures: string[] = [];
  for (const [number, asked] of casesFor(seed, count).entries()) {
    const found = await compare(asked);
    if (found.length > 0) failures.push(`${describe(asked, number)}\n    ${found.join("\n    ")}`);
  }
  const spread = [...statuses].toSorted(([a], [b]) => a - b).map(([status, times]) => `${status} × ${times}`);
  figure(`differential statuses ${spread.join(", ")}`);
  figure(`differential ${count} requests, ${failures.length} differ (seed ${seed})`);
  assert.is(
    failures.length,
    0,
    `${failures.length} differ\n${failures.slice(0, 40).join("\n")}\n${proxy.tail()}`,
  );
});

real("blanks around a value, which HTTP/2 forbids, get the apiserver's own answer", async () => {
  for (const fields of [[["authorization", "Bearer "]], [["authorization", " Bearer x\t"]]] as const) {
    const blanks = {
      kind: "blanks",
      mutates: false,
      protocol: "h2",
      method: "GET",
      path: "/version",
    } as const;
    const asked: Case = { ...blanks, fields };
    assert.equal(await compare(asked), [], describe(asked, 0));
  }
});

real("what the proxy refuses on purpose it refuses by name", async () => {
  for (const { asked, answer } of refusals) {
    const { status, ended, body } = await attempt(proxied, asked);
    assert.match(
      `${status} ${ended} ${body.toString()}`,
      answer,
      `${asked.protocol} ${asked.method} ${asked.path}`,
    );
  }
});

test.run();
