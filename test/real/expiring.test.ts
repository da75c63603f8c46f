/**
 * What an apiserver does when the certificate of a connected client expires: to a running watch, to the next request on
 * the same connection, to the socket of an exec, and to a new connection. Through the proxy, the same must happen.
 */
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { within } from "../support/within.ts";
import { order } from "./rig/ask.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import type { Pair } from "./rig/pki.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/expiring");
const real = testWith(test, clusterNeeds);
const lifeSeconds = 10;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

let cluster: Cluster;
const proxies: Proxy[] = [];

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2 });
  const { folder, pki, frontProxy } = cluster;
  const impersonator = pki.issue({ name: "impersonator", subject: "/O=system:masters/CN=impersonator" });
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  for (const clientCerts of ["FrontProxy", "Impersonate"] as const)
    proxies.push(
      await Proxy.start({
        folder,
        pki,
        backends,
        name: clientCerts,
        listener: { identity: { clientCerts } },
        listenerTls: { clientCAFile: pki.ca.certFile },
        config: {
          clusters: [
            {
              name: "default",
              backends,
              tls: {
                caFile: pki.ca.certFile,
                serverName: "kubernetes.default.svc",
                frontProxy,
                impersonator,
              },
            },
          ],
        },
      }),
    );
});

test.after(async () => {
  if (!real.canRun) return;
  for (const one of proxies) await one.stop();
  await cluster.stop();
});

function socketTo(url: string, pair: Pair): Promise<tls.TLSSocket> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = tls.connect({
      host: hostname,
      port: Number(port),
      servername: "kubernetes.default.svc",
      ca: readFileSync(cluster.caFile),
      cert: readFileSync(pair.certFile),
      key: readFileSync(pair.keyFile),
      ALPNProtocols: ["h2"],
    });
    socket.once("error", reject);
    socket.once("secureConnect", () => resolve(socket));
  });
}

const list = "/api/v1/namespaces/default/configmaps?limit=1";

/** A client that keeps a watch open from before its certificate expires until after that. */
class Holder {
  readonly name: string;
  readonly #url: string;
  readonly #pair: Pair;
  #session: http2.ClientHttp2Session | undefined;
  #seen = "";
  #isWatchOver = false;
  #wasSentAway = false;

  constructor(name: string, url: string, pair: Pair) {
    this.name = name;
    this.#url = url;
    this.#pair = pair;
  }

  async open(): Promise<void> {
    const socket = await socketTo(this.#url, this.#pair);
    const session = http2.connect(this.#url, { createConnection: () => socket });
    session.on("error", () => {});
    session.on("goaway", () => (this.#wasSentAway = true));
    const stream = session.request({ ":path": "/api/v1/configmaps?watch=1" });
    stream.on("data", (chunk: Buffer) => (this.#seen += chunk.toString()));
    stream.on("error", () => {});
    stream.on("close", () => (this.#isWatchOver = true));
    this.#session = session;
  }

  /** Returns the status of a GET on the open connection, or why there is none. */
  async ask(): Promise<string> {
    const session = this.#session;
    if (session === undefined || session.closed || session.destroyed) return "no connection";
    return statusOf(session);
  }

  /** Returns the same for a GET on a new connection. */
  async askAnew(): Promise<string> {
    try {
      const socket = await socketTo(this.#url, this.#pair);
      const session = http2.connect(this.#url, { createConnection: () => socket });
      session.on("error", () => {});
      const status = await statusOf(session);
      session.destroy();
      return status;
    } catch (reason) {
      return String(reason);
    }
  }

  /** True if the watch delivers the object of this name within three seconds. */
  async sees(name: string): Promise<boolean> {
    for (let left = 60; left > 0 && !this.#seen.includes(`"${name}"`); left -= 1) await pause(50);
    return this.#seen.includes(`"${name}"`);
  }

  get state(): object {
    return { isWatchOver: this.#isWatchOver, wasSentAway: this.#wasSentAway };
  }

  close(): void {
    this.#session?.destroy();
  }
}

async function statusOf(session: http2.ClientHttp2Session): Promise<string> {
  const stream = session.request({ ":path": list });
  const { promise, resolve } = Promise.withResolvers<string>();
  let status = "none";
  stream.on("response", (head) => (status = String(head[":status"])));
  stream.on("error", (error) => resolve(error.message));
  stream.on("close", () => resolve(status));
  stream.resume();
  return within(10_000, "an answer", promise);
}

async function write(name: string): Promise<void> {
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name } };
  await order(cluster.admin, { method: "POST", path: "/api/v1/namespaces/default/configmaps", body });
}

/** What happened to one client when its certificate expired. `state` is from before the first request after that. */
type Course = {
  readonly before: string;
  readonly after: string;
  readonly anew: string;
  readonly isWatchAlive: boolean;
  readonly state: object;
  readonly stateAtEnd: object;
};

real("what follows from a certificate's end is the same directly and through the proxy", async () => {
  const pair = cluster.pki.issueFor(lifeSeconds, { name: "short", subject: "/O=system:masters/CN=short" });
  const endsAt = Date.now() + lifeSeconds * 1000;
  const holders = [
    new Holder("directly", cluster.apiserver(0).url, pair),
    ...proxies.map((proxy, at) => new Holder(at === 0 ? "front-proxy" : "impersonate", proxy.url, pair)),
  ];
  for (const holder of holders) await holder.open();
  const before = await Promise.all(holders.map((holder) => holder.ask()));
  await write("before-the-end");
  for (const holder of holders) assert.ok(await holder.sees("before-the-end"), holder.name);
  await pause(endsAt - Date.now() + 1500);
  await write("after-the-end");
  const courses: Course[] = [];
  for (const [at, holder] of holders.entries()) {
    const isWatchAlive = await holder.sees("after-the-end");
    const { state } = holder;
    const after = await holder.ask();
    const anew = await holder.askAnew();
    await pause(500);
    courses.push({ before: before[at] ?? "", isWatchAlive, state, after, anew, stateAtEnd: holder.state });
    figure(`${holder.name}: ${JSON.stringify(courses[at])}`);
  }
  await write("long-after-the-end");
  for (const [at, holder] of holders.entries()) {
    const course = courses[at];
    if (course === undefined) throw new Error(`No course of ${holder.name}`);
    const { before: first, after, anew, isWatchAlive } = course;
    assert.is(first, "200", holder.name);
    assert.is(isWatchAlive, true, `${holder.name}: the watch that runs goes on`);
    // The proxy sends GOAWAY to its client a little before the expiry, and the client gets no error.
    assert.ok(["401", "no connection"].includes(after), `${holder.name}: ${after}`);
    assert.is(anew, "401", holder.name);
    assert.is(await holder.sees("long-after-the-end"), true, `${holder.name}: also after the 401`);
    assert.equal(course.stateAtEnd, { isWatchOver: false, wasSentAway: true }, holder.name);
    holder.close();
  }
});

test.run();
