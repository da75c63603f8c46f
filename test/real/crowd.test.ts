/**
 * Many clients share upstream connections, and each must get the responses to its own requests. At the same time,
 * clients reset streams half way, upload, open watches, disconnect, and send tokens that no apiserver knows (after such
 * a token, an apiserver closes the whole connection). CROWD_SECONDS sets a longer duration.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { startEcho } from "./differential/echo.ts";
import { ask, order } from "./rig/ask.ts";
import { type Cluster, startCluster, users } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/crowd");
const real = testWith(test, clusterNeeds);
const seconds = Number(process.env["CROWD_SECONDS"] ?? 15);

let cluster: Cluster;
let proxy: Proxy;
let echo: Server;

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2, pods: true });
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
  echo = startEcho(cluster.node.forwardPort, cluster.node.address);
  const create = (path: string, body: object): Promise<string> =>
    order(cluster.admin, { method: "POST", path: `/api/v1/namespaces/default/${path}`, body });
  for (let number = 0; number < 50; number++) {
    const data = { text: String(number).repeat(1 + number * 400) };
    await create("configmaps", { metadata: { name: `thing-${number}` }, data });
  }
  const spec = {
    nodeName: cluster.node.name,
    hostNetwork: true,
    containers: [{ name: "main", image: "none" }],
  };
  await create("pods", { metadata: { name: "echo" }, spec });
  while ((await ask(cluster.admin, { path: `${echoPath()}/echo` })).status !== 200) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});

test.after(async () => {
  if (!real.canRun) return;
  echo.close();
  echo.closeAllConnections();
  await proxy.stop();
  await cluster.stop();
});

function echoPath(): string {
  return `/api/v1/namespaces/default/pods/http:echo:${cluster.node.forwardPort}/proxy`;
}

type Told = { readonly status: number; readonly body: string; readonly retryAfter: string | undefined };

type Question = {
  readonly method?: string;
  readonly path: string;
  readonly token?: string;
  readonly body?: Buffer;
  readonly tag?: string;
};

/** Sends a request and resolves with the response. Rejects if the stream does not end with END_STREAM. */
function tell(
  session: ClientHttp2Session,
  { method = "GET", path, token, body, tag }: Question,
): Promise<Told> {
  const { promise, resolve, reject } = Promise.withResolvers<Told>();
  const fields = { ":method": method, ":path": path, authorization: `Bearer ${token ?? users.admin.token}` };
  const stream = session.request({ ...fields, ...(tag === undefined ? {} : { "x-tag": tag }) });
  let status = 0;
  let retryAfter: string | undefined;
  const chunks: Buffer[] = [];
  stream.setTimeout(20_000, () => reject(new Error(`${path}: silent for 20 s`)));
  stream.on("response", (reply) => {
    status = reply[":status"] ?? 0;
    retryAfter = reply["retry-after"];
  });
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  stream.on("end", () => resolve({ status, body: Buffer.concat(chunks).toString(), retryAfter }));
  stream.on("error", (error) => reject(new Error(`${method} ${path}: ${error.message}`)));
  stream.on("close", () => reject(new Error(`${method} ${path}: reset ${stream.rstCode}`)));
  stream.end(body);
  return promise;
}

/** Opens a stream and resets it at a random time within 30 ms. */
async function leave(session: ClientHttp2Session, path: string): Promise<void> {
  const stream = session.request({ ":path": path, authorization: `Bearer ${users.admin.token}` });
  stream.on("error", () => undefined); // the test resets it
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 30));
  stream.close(8);
}

function below(limit: number): number {
  return Math.floor(Math.random() * limit);
}

const collection = "/api/v1/namespaces/default/configmaps";

/** Each entry is one action of a client, with the check of its outcome. */
const acts: readonly ((session: ClientHttp2Session) => Promise<void>)[] = [
  async (session) => {
    const number = below(50);
    const { status, body } = await tell(session, { path: `${collection}/thing-${number}` });
    assert.is(status, 200, body);
    const { metadata, data } = JSON.parse(body) as { metadata: { name: string }; data: { text: string } };
    assert.is(metadata.name, `thing-${number}`);
    assert.is(data.text, String(number).repeat(1 + number * 400));
  },
  async (session) => {
    const { status, body } = await tell(session, { path: `${collection}?limit=20` });
    assert.is(status, 200, body);
    assert.is((JSON.parse(body) as { items: unknown[] }).items.length, 20);
  },
  async (session) => {
    const tag = createHash("sha256").update(String(Math.random())).digest("hex");
    const body = Buffer.from(tag.repeat(below(3_000)));
    const told = await tell(session, { method: "POST", path: `${echoPath()}/echo`, tag, body });
    assert.is(told.status, 200, told.body);
    const seen = JSON.parse(told.body) as { rawHeaders: string[]; length: number; text: string };
    assert.is(seen.rawHeaders[seen.rawHeaders.indexOf("X-Tag") + 1], tag);
    assert.is(seen.length, body.length);
    if (seen.text !== "") assert.is(seen.text, body.toString());
  },
  async (session) => {
    const token = `unknown-${below(1_000_000)}`;
    const { status, retryAfter } = await tell(session, { path: `${collection}/thing-1`, token });
    // Each 401 costs an upstream connection, so the proxy limits the rate of requests with unknown tokens. It answers
    // the others with 503 and Retry-After.
    if (status === 503) assert.match(retryAfter ?? "", /^\d+$/);
    else assert.is(status, 401);
  },
  async (session) => {
    const { status } = await tell(session, { path: `${collection}/thing-1`, token: users.bob.token });
    assert.is(status, 403);
  },
  (session) => leave(session, `${collection}?watch=true`),
  (session) => leave(session, `${echoPath()}/bytes/1000000`),
  (session) => leave(session, collection),
];

/** Returns why an action failed, without the parts that vary. */
function problemOf(reason: unknown): string {
  const { message, stack = "", actual } = reason as Error & { actual?: unknown };
  const at = /crowd\.test\.ts:\d+/.exec(stack)?.[0] ?? "";
  return `${message.slice(0, 200)} (${at}, got ${String(actual).slice(0, 300)})`;
}

real("40 clients on shared upstream connections each get their own responses (row 15, 22)", async () => {
  const until = Date.now() + seconds * 1_000;
  const problems = new Map<string, number>();
  let done = 0;
  const note = (what: string): unknown => problems.set(what, (problems.get(what) ?? 0) + 1);
  const several = async (session: ClientHttp2Session): Promise<void> => {
    const chosen = Array.from({ length: 1 + below(8) }, () => acts[below(acts.length)] ?? acts[0]);
    const outcomes = await Promise.allSettled(chosen.map(async (act) => act?.(session)));
    for (const outcome of outcomes) {
      if (outcome.status === "fulfilled") done++;
      else note(problemOf(outcome.reason));
    }
  };
  const client = async (): Promise<void> => {
    while (Date.now() < until) {
      const session = connect(proxy.url, { ca: readFileSync(cluster.caFile), servername: "localhost" });
      session.on("error", (error) => note(error.message));
      for (let rounds = 0; rounds < 20 && Date.now() < until && !session.closed; rounds++)
        await several(session);
      session.close();
    }
  };
  await Promise.all(Array.from({ length: 40 }, client));
  figure(`crowd ${done} answers right in ${seconds} s, ${problems.size} kinds of problem`);
  const told = [...problems].map(([what, times]) => `${times} × ${what}`).slice(0, 20);
  assert.is(problems.size, 0, `${told.join("\n")}\n${proxy.tail()}`);
});

test.run();
