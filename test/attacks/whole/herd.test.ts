/**
 * After a restart of the proxy, thousands of clients return at once. No backend has accepted their bearer tokens yet,
 * and each opens ten watches first. The backends send GOAWAY after each 401, as a kube-apiserver does. In one test
 * these clients are alone, in another there is also a flood of watches with invented tokens or none. `npm run
 * test:herd` is the full size: BEARERS=5000 at RATE=3000 watches a second.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { figure } from "../../support/figure.ts";
import { type HerdPart, PartProcess, told } from "../../support/herd-part.ts";
import { testPki } from "../../support/pki.ts";
import { ProxyProcess } from "../../support/proxy-process.ts";

const test = suite("attacks/whole/herd");

const bearers = Number(process.env["BEARERS"] ?? 300);
const perSecond = Number(process.env["RATE"] ?? 2000);
const watchesEach = 10;
/** Timeout in ms. A machine that can run the test at all needs less. */
const patienceMs = 150_000;
const MiB = 1024 * 1024;
/** The most memory that the pending requests may take, including the sockets and sessions of their clients. */
const mostBytes = 700 * MiB;

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

class Stage {
  readonly proxy: ProxyProcess;
  readonly backends: readonly PartProcess[];
  readonly #parts: PartProcess[] = [];

  private constructor(proxy: ProxyProcess, backends: readonly PartProcess[]) {
    this.proxy = proxy;
    this.backends = backends;
  }

  static async set(): Promise<Stage> {
    const { authority, serving } = await testPki();
    const { certificate, key } = serving;
    const own = { role: "backend", certificate, key } as const;
    const backends = await Promise.all([PartProcess.start(own), PartProcess.start(own)]);
    const targets = backends.map(({ port }, at) => ({ name: `cp-${at}`, port, ca: authority.certificate }));
    return new Stage(await ProxyProcess.start({ targets }), backends);
  }

  async client(part: Pick<HerdPart, "role" | "address"> & Partial<HerdPart>): Promise<PartProcess> {
    const { port, ca } = this.proxy.place;
    const client = await PartProcess.start({ port, ca, ...part });
    this.#parts.push(client);
    return client;
  }

  /** Opens the watches of `count` bearer tokens. Resolves with the responses by status, once all are complete. */
  async herd(count: number, address: string): Promise<Readonly<Record<string, number>>> {
    const beganAt = performance.now();
    const client = await this.client({ role: "herd", address, bearers: count, watchesEach, perSecond });
    let mostRss = 0;
    let state = await client.state();
    while (!state.isDone && performance.now() - beganAt < patienceMs) {
      await pause(200);
      mostRss = Math.max(mostRss, this.proxy.rssBytes);
      state = await client.state();
    }
    const ms = Math.round(performance.now() - beganAt);
    figure(
      `${state.asked} watches in ${ms} ms: ${told(state)}; the proxy has ${Math.round(mostRss / MiB)} MiB`,
    );
    assert.ok(mostRss < mostBytes, `${mostRss} bytes`);
    return state.counts;
  }

  async stop(): Promise<void> {
    const state = await this.proxy.state();
    const failures: Record<string, number> = {};
    for (const message of state.failures) failures[message] = (failures[message] ?? 0) + 1;
    figure(`the proxy took ${Math.round(state.cpuMs)} ms of a processor`);
    if (state.failures.length > 0) figure(`refused: ${JSON.stringify(failures)}`);
    for (const part of this.#parts) part.stop();
    await this.proxy.stop();
    for (const backend of this.backends) backend.stop();
    assert.equal(state.faults, []);
  }
}

test(`${bearers} new bearers begin with ${watchesEach} watches each at ${perSecond} a second: none is refused`, async () => {
  const stage = await Stage.set();
  const counts = await stage.herd(bearers, "127.0.0.1");
  const late = await stage.herd(1, "127.0.0.4");
  await stage.stop();
  assert.equal(counts, { 200: bearers * watchesEach });
  assert.equal(late, { 200: watchesEach });
});

test("A43: beside a flood of invented tokens from another address the herd and the proven are served all the same", async () => {
  const stage = await Stage.set();
  const pids = [stage.proxy, ...stage.backends].map(({ pid }) => pid);
  const proven = await stage.client({ role: "proven", address: "127.0.0.3", perSecond: 50, pids });
  await pause(500);
  const flood = await stage.client({ role: "flood", address: "127.0.0.2", perSecond: 500 });
  const counts = await stage.herd(bearers, "127.0.0.1");
  const [flooded, served] = await Promise.all([flood.state(), proven.state()]);
  const { goAways } = await (stage.backends[0] as PartProcess).state();
  figure(
    `flood ${told(flooded)}; proven ${told(served)} (${served.slowestOwnMs} ms without the wait for a processor); ${goAways} GOAWAYs from the first backend`,
  );
  await stage.stop();
  assert.equal(counts, { 200: bearers * watchesEach });
  assert.equal(Object.keys(served.counts), ["200"]);
  assert.ok(served.slowestOwnMs <= 1000, `${served.slowestOwnMs} ms`);
  // Requests above the share of one source address are refused.
  assert.equal(
    Object.keys(flooded.counts).filter((status) => !["401", "429", "503"].includes(status)),
    [],
  );
});

test.run();
