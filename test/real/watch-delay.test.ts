/**
 * The delay of watch events as watchkeeper measures it, compared with etcd's own watch. One apiserver is near; all data
 * to and from the other is delayed. All times come from one clock.
 */
import { readFileSync } from "node:fs";
import { type ClientHttp2Session, connect } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { seeded } from "../support/random.ts";
import { type Cluster, startCluster, users } from "./rig/cluster.ts";
import { follow } from "./rig/etcd.ts";
import { Far } from "./rig/far.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/watch-delay");
const real = testWith(test, clusterNeeds);

const objects = "/api/v1/namespaces/default/configmaps";
const awayMs = 60;
const writes = 40;

let cluster: Cluster;
let proxy: Proxy;
let far: Far;
/**
 * HTTP/2 sessions of the test. They are closed at the end even if the test fails, because open sockets keep the process
 * alive.
 */
const sessions: ClientHttp2Session[] = [];
let stopFollowing = (): void => {};

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2 });
  far = await Far.start(cluster.apiserver(1).url, { leastMs: awayMs, mostMs: awayMs }, seeded(1));
  const backends = [
    { name: "near", url: cluster.apiserver(0).url },
    { name: "far", url: far.url },
  ];
  proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
  await proxy.settled(2);
});

test.after(async () => {
  if (!real.canRun) return;
  stopFollowing();
  for (const one of sessions) one.destroy();
  await proxy.stop();
  far.stop();
  await cluster.stop();
});

function session(): ClientHttp2Session {
  const one = connect(proxy.url, { ca: readFileSync(cluster.caFile) });
  one.on("error", () => {});
  sessions.push(one);
  return one;
}

const authorization = `Bearer ${users.admin.token}`;

/** A watch of all ConfigMaps, with the time at which it delivered each version. */
class Watch {
  readonly at = new Map<string, number>();

  constructor(from: string) {
    const path = `/api/v1/configmaps?watch=true&resourceVersion=${from}`;
    const stream = session().request({ ":path": path, authorization });
    let rest = "";
    stream.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const version = /"resourceVersion":"(\d+)"/.exec(line)?.[1] ?? "";
        if (!this.at.has(version)) this.at.set(version, Date.now());
      }
    });
  }
}

type Answer = { readonly version: string; readonly ms: number };

function create(on: ClientHttp2Session, name: string): Promise<Answer> {
  const startedAt = Date.now();
  const stream = on.request({
    ":method": "POST",
    ":path": objects,
    authorization,
    "content-type": "application/json",
  });
  let text = "";
  stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  stream.end(JSON.stringify({ metadata: { name } }));
  return new Promise((resolve, reject) => {
    stream.on("error", reject);
    stream.on("end", () => {
      const version = /"resourceVersion":"(\d+)"/.exec(text)?.[1] ?? "";
      resolve({ version, ms: Date.now() - startedAt });
    });
  });
}

/** Returns a connection that is bound to the near apiserver, so that the responses to its writes are not delayed. */
async function nearWriter(): Promise<ClientHttp2Session> {
  for (let number = 0; number < 10; number += 1) {
    const writer = session();
    await create(writer, `first-${number}`);
    if ((await create(writer, `second-${number}`)).ms < awayMs) return writer;
    writer.destroy();
  }
  throw new Error("No connection of ten leads to the near apiserver");
}

/** Returns the number of the delays that watchkeeper has measured at a backend, and their sum in milliseconds. */
async function measured(backend: string): Promise<readonly [count: number, sumMs: number]> {
  const text = await (await fetch(`${proxy.metricsUrl}/metrics`)).text();
  const [count = 0, sum = 0] = ["count", "sum"].map((what) => {
    const row = new RegExp(
      `^watchkeeper_watch_delay_seconds_${what}\\{backend="${backend}",group=""\\} (\\S+)$`,
      "m",
    );
    return Number(row.exec(text)?.[1] ?? 0);
  });
  return [count, sum * 1000];
}

async function measuredOnce(backend: string, before: readonly [number, number]): Promise<number> {
  for (const deadline = Date.now() + 10_000; Date.now() < deadline; await sleep(20)) {
    const [count, sum] = await measured(backend);
    if (count > before[0]) return sum - before[1];
  }
  throw new Error(`Nothing was measured at ${backend}`);
}

const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? 0;

real(
  "the delay is that of etcd's own clock, at an apiserver that is near and at one that is far away",
  async () => {
    const committedAt = new Map<string, number>();
    stopFollowing = await follow(cluster.etcdUrl, "/registry/configmaps/", ({ version, at }) =>
      committedAt.set(String(version), at),
    );
    const writer = await nearWriter();
    const { version: from } = await create(writer, "from");
    // The proxy binds consecutive new clients to the backends in turn.
    const watches = [new Watch(from), new Watch(from)];
    await sleep(4000);
    const errors = { near: [] as number[], far: [] as number[] };
    const delays = { near: [] as number[], far: [] as number[] };
    for (let number = 0; number < writes; number += 1) {
      const before = { near: await measured("near"), far: await measured("far") };
      const { version } = await create(writer, `object-${number}`);
      const found = {
        near: await measuredOnce("near", before.near),
        far: await measuredOnce("far", before.far),
      };
      await sleep(30);
      const committed = committedAt.get(version) ?? 0;
      const seen = watches.map(({ at }) => (at.get(version) ?? 0) - committed).toSorted((a, b) => a - b);
      assert.is(seen.length, 2);
      errors.near.push((seen[0] ?? 0) - found.near);
      errors.far.push((seen[1] ?? 0) - found.far);
      delays.near.push(found.near);
      delays.far.push(found.far);
    }
    for (const name of ["near", "far"] as const) {
      const [half, most] = [0.5, 0.95].map((share) => quantile(errors[name], share).toFixed(1));
      figure(
        `${name}: delay p50 ${quantile(delays[name], 0.5).toFixed(1)} ms; etcd's clock minus it p50 ${half} ms, p95 ${most} ms`,
      );
      assert.ok(Math.abs(quantile(errors[name], 0.5)) <= 5, `${name}: ${errors[name].join(" ")}`);
    }
    assert.ok(quantile(delays.far, 0.5) >= awayMs / 2 && quantile(delays.near, 0.5) < awayMs / 4);
  },
);

test.run();
