/**
 * A backend that is slow, loses packets, is idle or stalls for a moment is not dead, and no client notices anything.
 * FAR_SECONDS and IDLE_SECONDS set longer durations; `npm run test:idle` keeps connections idle for a quarter of an
 * hour.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { seeded } from "../support/random.ts";
import { Asking, isFailure, reasons } from "./load/asking.ts";
import { Client } from "./load/client.ts";
import { Logs } from "./load/logs.ts";
import { places, Stage } from "./load/stage.ts";
import { Tunnel } from "./load/tunnel.ts";
import { compare, Watching } from "./load/watching.ts";
import { Far } from "./rig/far.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";
import { saidSince } from "./rig/said.ts";

const test = suite("real/false-alarms");
const real = testWith(test, clusterNeeds);
const farMs = 1_000 * Number(process.env["FAR_SECONDS"] ?? 60);
const idleMs = 1_000 * Number(process.env["IDLE_SECONDS"] ?? 30);
/** One-way delay in milliseconds. Two of these make a round trip of 500 ± 200 ms. */
const distance = { leastMs: 150, mostMs: 350 };
const loss = 0.05;

let stage: Stage;

test.before(async () => {
  if (real.canRun) stage = await Stage.start();
});

test.after(async () => {
  if (real.canRun) await stage.stop();
});

/** Watches, tunnels and logs that carry little or nothing, some of them on each backend. */
class Quiet {
  readonly watches: readonly Watching[];
  readonly tunnels: readonly Tunnel[];
  readonly logs: readonly Logs[];
  readonly direct: Watching;
  readonly #clients: readonly Client[];

  private constructor(
    clients: readonly Client[],
    direct: Client,
    tunnels: readonly Tunnel[],
    version: number,
  ) {
    this.#clients = [...clients, direct];
    this.tunnels = tunnels;
    this.watches = clients.map((client) => new Watching(client, places.watched, version));
    this.logs = clients.map((client) => new Logs(client, places.pod));
    this.direct = new Watching(direct, places.watched, version);
  }

  static async start(url: string): Promise<Quiet> {
    const server = { ...stage.server, url };
    const tunnels: Tunnel[] = [];
    for (const kind of ["exec", "port-forward", "exec", "port-forward"] as const) {
      tunnels.push(await Tunnel.open(server, kind, places.pod));
    }
    const clients = Array.from({ length: 4 }, () => new Client(server));
    return new Quiet(clients, new Client(stage.cluster.admin), tunnels, await stage.version());
  }

  /** Fails unless every tunnel, log and watch is still open and works, and no watch has lost an event. */
  async check(): Promise<void> {
    for (const tunnel of this.tunnels) assert.ok(await tunnel.answers(), `${tunnel.kind} lives`);
    stage.cluster.node.log(`end ${Date.now()}`);
    for (const one of this.logs) assert.ok(await one.shows("end "), "logs -f lives");
    for (const watch of this.watches) {
      assert.equal(watch.ends, []);
      const { missing, doubled, reordered } = compare(watch.events, this.direct.events);
      assert.equal({ missing, doubled, reordered }, { missing: 0, doubled: 0, reordered: 0 });
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.watches, this.direct].map((watch) => watch.stop()));
    for (const one of [...this.tunnels, ...this.logs]) one.close();
    for (const client of this.#clients) client.close();
  }
}

/**
 * Returns what the proxy gave up since `at`: upstream connections that it closed because of a failure, tunnels that it
 * ended, and backends that it marked dead.
 */
function tornDown(proxy: Proxy, at: number): string[] {
  return saidSince(proxy.logFile, at)
    .filter(
      ({ msg, to, reason }) =>
        (msg === "backend.changed" && to === "dead") ||
        (msg === "upstream_connection.closed" && reason !== "ended") ||
        (msg === "tunnel.ended" && /dead|lost/.test(String(reason))),
    )
    .map(({ msg, backend, reason }) => `${msg} ${String(backend)}: ${String(reason)}`);
}

function suspicions(proxy: Proxy, at: number): number {
  return saidSince(proxy.logFile, at).filter(({ msg, to }) => msg === "backend.changed" && to === "suspect")
    .length;
}

real(`nothing is torn down at a round trip of 500 ± 200 ms with 5 % loss (${farMs / 1_000} s)`, async () => {
  const fars = await Promise.all(
    stage.cluster.apiservers.map(({ url }, number) => Far.start(url, distance, seeded(number + 1))),
  );
  const backends = stage.cluster.apiservers.map(({ name }, number) => ({
    name,
    url: fars[number]?.url ?? "",
  }));
  const proxy = await Proxy.start({
    folder: stage.cluster.folder,
    pki: stage.cluster.pki,
    backends,
    name: "far",
  });
  for (const apiserver of stage.cluster.apiservers) apiserver.lose(loss);
  const quiet = await Quiet.start(proxy.url);
  const stopWriting = stage.write(5);
  const askers = [
    new Client({ ...stage.server, url: proxy.url }),
    new Client({ ...stage.server, url: proxy.url }),
  ];
  const gets = new Asking(askers, 500, () => ({
    tag: undefined,
    question: { path: `${places.watched}/thing-0` },
  }));
  const from = Date.now();
  await sleep(farMs);
  stopWriting();
  await gets.stop();
  for (const apiserver of stage.cluster.apiservers) apiserver.heal();
  await sleep(3_000);
  const failed = gets.heard.map(({ heard }) => heard).filter((heard) => isFailure(heard));
  const slowest = Math.max(...gets.heard.map(({ heard }) => heard.headMs));
  figure(`${suspicions(proxy, from)} suspicions, slowest of ${gets.heard.length} GETs ${slowest} ms`);
  assert.equal(tornDown(proxy, from), []);
  assert.is(reasons(failed), "");
  await quiet.check();
  await quiet.stop();
  for (const client of askers) client.close();
  await proxy.stop();
  for (const far of fars) far.stop();
});

real("a stall of the proxy itself for two seconds is held against no backend", async () => {
  await stage.proxy.settled(2);
  const quiet = await Quiet.start(stage.proxy.url);
  const stopWriting = stage.write(10);
  const from = Date.now();
  for (const pauseMs of [1_300, 1_450, 1_610]) {
    await sleep(pauseMs);
    stage.proxy.signal("SIGSTOP");
    await sleep(2_000);
    stage.proxy.signal("SIGCONT");
  }
  await sleep(1_000);
  stopWriting();
  await sleep(1_000);
  figure(`${suspicions(stage.proxy, from)} suspicions in three stalls`);
  assert.equal(tornDown(stage.proxy, from), []);
  await quiet.check();
  await quiet.stop();
});

real("an idle exec and a silent watch are not ended (row 21)", async () => {
  await stage.proxy.settled(2);
  const quiet = await Quiet.start(stage.proxy.url);
  const from = Date.now();
  await sleep(idleMs);
  assert.equal(tornDown(stage.proxy, from), []);
  assert.is(suspicions(stage.proxy, from), 0);
  await quiet.check();
  await quiet.stop();
});

test.run();
