/**
 * client-go, exec and client certificates through a passthrough listener, behind which the kube-apiservers terminate
 * TLS. For comparison, the same client through a simple TCP relay. IDLE_SECONDS: how long an exec is idle (20; 900 in
 * the long form). NAIVE_SECONDS: how long to wait for the relay's client to recover (8; with 60 it recovers by itself).
 */
import { type ChildProcess, spawn } from "node:child_process";
import net from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { freePort } from "../support/free-port.ts";
import { within } from "../support/within.ts";
import { Tunnel } from "./load/tunnel.ts";
import { order, type Server, whoIs } from "./rig/ask.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { onLeave } from "./rig/leave.ts";
import { clusterNeeds, figure, pathOf, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";
import { saidSince, verdict } from "./rig/said.ts";

const test = suite("real/passthrough");
const real = testWith(test, [...clusterNeeds, "informer"]);
const idleMs = 1_000 * Number(process.env["IDLE_SECONDS"] ?? 20);
const naiveMs = 1_000 * Number(process.env["NAIVE_SECONDS"] ?? 8);
const goalMs = 3_500;
const pod = "/api/v1/namespaces/default/pods/shell";

let cluster: Cluster;
let proxy: Proxy;

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2, pods: true });
  const spec = { nodeName: cluster.node.name, containers: [{ name: "main", image: "none" }] };
  const body = { apiVersion: "v1", kind: "Pod", metadata: { name: "shell" }, spec };
  await order(cluster.admin, { method: "POST", path: "/api/v1/namespaces/default/pods", body });
  for (let tries = 0; tries < 200; tries += 1) {
    if (/"phase": ?"Running"/.test(await order(cluster.admin, { path: pod }))) break;
    await sleep(100);
  }
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  const config = { logging: { accessLog: "All" } };
  proxy = await Proxy.start({
    folder: cluster.folder,
    pki: cluster.pki,
    backends,
    mode: "Passthrough",
    config,
  });
  await proxy.settled(2);
});

test.after(async () => {
  if (!real.canRun) return;
  await proxy.stop();
  await cluster.stop();
});

type Summary = { readonly lists: number; readonly streamed: number; readonly watches: number };

/** A client-go informer on ConfigMaps, with the time at which it reported each. */
class Follower {
  readonly heardAt = new Map<string, number>();
  summary: Summary | undefined;
  readonly #process: ChildProcess;
  readonly #ended = Promise.withResolvers<void>();
  readonly #synced = Promise.withResolvers<void>();

  constructor(url: string) {
    const args = [`-kubeconfig=${cluster.kubeconfig(url)}`, "-for=1h"];
    this.#process = spawn("setpriv", ["--pdeathsig", "KILL", pathOf("informer"), ...args], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const leave = onLeave(() => this.#process.kill("SIGKILL"));
    if (this.#process.stdout === null) return;
    const lines = createInterface({ input: this.#process.stdout });
    lines.on("line", (line) => this.#take(JSON.parse(line) as { kind: string; name?: string }));
    lines.on("close", () => {
      leave();
      this.#ended.resolve();
    });
  }

  static async start(url: string): Promise<Follower> {
    const follower = new Follower(url);
    const ended = follower.#ended.promise.then(() => Promise.reject(new Error("client-go ended")));
    await within(60_000, "client-go to list", Promise.race([follower.#synced.promise, ended]));
    return follower;
  }

  #take(told: { readonly kind: string; readonly name?: string }): void {
    if (told.kind === "added") this.heardAt.set(told.name ?? "", Date.now());
    else if (told.kind === "synced") this.#synced.resolve();
    else if (told.kind === "summary") this.summary = told as unknown as Summary;
  }

  /** Returns when the informer first reported an object that was written after `at`; NaN if it has not yet. */
  liveAt(at: number, writtenAt: ReadonlyMap<string, number>): number {
    const later = [...this.heardAt]
      .filter(([name]) => (writtenAt.get(name) ?? 0) > at)
      .map(([, heard]) => heard);
    return later.length === 0 ? Number.NaN : Math.min(...later);
  }

  async stop(): Promise<void> {
    this.#process.kill("SIGTERM");
    await this.#ended.promise;
  }
}

/** Creates a ConfigMap every 100 ms through the apiserver that has no fault. */
function startWriter(): { readonly writtenAt: Map<string, number>; stop(): Promise<void> } {
  const writtenAt = new Map<string, number>();
  const stopped = new AbortController();
  const write = async (): Promise<void> => {
    for (let count = 0; !stopped.signal.aborted; count += 1) {
      const name = `thing-${Date.now()}-${count}`;
      const body = { metadata: { name } };
      writtenAt.set(name, Date.now());
      await order(cluster.admin, { method: "POST", path: "/api/v1/namespaces/default/configmaps", body });
      await sleep(100);
    }
  };
  const written = write();
  return {
    writtenAt,
    async stop() {
      stopped.abort();
      await written;
    },
  };
}

/** Starts a TCP relay that sends connections to the two apiservers in turn. It is the comparison without the proxy. */
async function startNaive(): Promise<{ readonly url: string; stop(): void }> {
  const sockets: net.Socket[] = [];
  let count = 0;
  const server = net.createServer((down) => {
    const url = new URL(cluster.apiserver(count % 2).url);
    count += 1;
    const up = net.connect(Number(url.port), url.hostname);
    sockets.push(down, up);
    for (const [one, other] of [
      [down, up],
      [up, down],
    ] as const) {
      one.on("error", () => other.destroy());
      one.pipe(other);
    }
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `https://127.0.0.1:${port}`,
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

const server = (): Server => ({ url: proxy.url, caFile: cluster.caFile, token: cluster.token });

async function openOn(backend: string): Promise<number> {
  const text = await (await fetch(`${proxy.metricsUrl}/metrics`)).text();
  const line = new RegExp(
    String.raw`^watchkeeper_passthrough_connections\{backend="${backend}"\} (\d+)$`,
    "m",
  );
  return Number(line.exec(text)?.[1] ?? 0);
}

real("a client certificate is the apiserver's own to judge", async () => {
  const pair = cluster.pki.issue({ name: "carol", subject: "/O=readers/CN=carol" });
  const user = await whoIs({ url: proxy.url, caFile: cluster.caFile, pair });
  if (typeof user === "number") throw new Error(`Refused with ${user}`);
  assert.is(user.username, "carol");
  assert.ok(user.groups.includes("readers"));
});

real(
  "an idle exec stays; a black hole under its apiserver is felt for three seconds, 45 without us",
  async () => {
    const naive = await startNaive();
    const writer = startWriter();
    const execs = [await Tunnel.open(server(), "exec", pod), await Tunnel.open(server(), "exec", pod)];
    const beside = [await Follower.start(naive.url), await Follower.start(naive.url)];
    const followers = await Promise.all(Array.from({ length: 4 }, () => Follower.start(proxy.url)));
    // The proxy caches its metrics for a second, so the test repeats the scrape.
    for (let tries = 0; tries < 30 && (await openOn("api-0")) < 3; tries += 1) await sleep(100);
    assert.ok((await openOn("api-0")) >= 3, "nothing is on the apiserver that is hurt");
    await sleep(idleMs);
    for (const exec of execs) assert.ok(await exec.answers(), "an idle exec is gone");
    figure(`2 of 2 execs answer after ${idleMs / 1000} s of silence`);
    const holeAt = Date.now();
    cluster.apiserver(0).blackHole();
    const isLive = (one: Follower): boolean => !Number.isNaN(one.liveAt(holeAt, writer.writtenAt));
    while (!followers.every(isLive) && Date.now() < holeAt + 20_000) await sleep(20);
    const tookMs = followers
      .map((one) => one.liveAt(holeAt, writer.writtenAt) - holeAt)
      .toSorted((a, b) => a - b);
    const said = saidSince(proxy.logFile, holeAt);
    const cutMs = said
      .filter(({ msg, reason }) => msg === "passthrough.ended" && reason === "backend_dead")
      .map(({ ts }) => Math.round(ts - holeAt));
    figure(
      `suspect after ${Math.round((verdict(said, "api-0", "suspect")?.ts ?? 0) - holeAt)} ms, cut after ${cutMs.join(", ")} ms`,
    );
    figure(`client-go live again after ${tookMs.join(", ")} ms (4 informers, 2 on each apiserver)`);
    const alive = execs.filter(({ isOpen }) => isOpen);
    figure(`${alive.length} of 2 execs live on`);
    while (!beside.every(isLive) && Date.now() < holeAt + naiveMs) await sleep(100);
    const naiveTook = beside
      .map((one) => one.liveAt(holeAt, writer.writtenAt) - holeAt)
      .toSorted((a, b) => a - b);
    const inWords = naiveTook.map((ms) => (Number.isNaN(ms) ? `not in ${naiveMs} ms` : `${ms} ms`));
    figure(`through a naive splice: ${inWords.join(", ")}`);
    await writer.stop();
    cluster.apiserver(0).heal();
    await Promise.all([...followers, ...beside].map((one) => one.stop()));
    naive.stop();
    // The times of connections to the unaffected apiserver show how slow the machine is: on a busy one, every write is
    // late.
    const [unhurt = 0] = tookMs;
    assert.ok(
      tookMs.every((ms) => ms - unhurt <= 2 * goalMs),
      `${tookMs.join(", ")} ms`,
    );
    // Each informer has listed once. After the fault, each only resumed its watch.
    assert.equal(
      followers.map(({ summary }) => (summary?.lists ?? 0) + (summary?.streamed ?? 0)),
      [1, 1, 1, 1],
    );
    assert.is(alive.length, 1);
    assert.ok(await alive[0]?.answers());
    assert.ok(
      naiveTook.some((ms) => !(ms <= 2 * goalMs)),
      "the naive splice felt nothing: was there a hole?",
    );
  },
);

test.run();
