/**
 * Watches without a version begin with the initial events, which are all ADDED. One of two apiservers is killed while
 * such watches are open. Each watch that is still open afterwards must have received every object exactly once, with
 * and without a watch cache in the apiserver.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Client } from "./load/client.ts";
import { ask, order } from "./rig/ask.ts";
import { startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/initial-events");
const real = testWith(test, clusterNeeds);

const path = "/api/v1/namespaces/default/configmaps";
const selector = "labelSelector=test%3Dinitial-events";
const clients = 4;
const watchesPerClient = 25;

/** A watch without bookmarks, as `curl` or a script opens it. */
class StateWatch {
  readonly names: string[] = [];
  readonly types = new Set<string>();
  isOver = false;
  #rest = "";

  constructor(client: Client) {
    const stream = client.open({ path: `${path}?watch=true&${selector}` });
    stream.setEncoding("utf8");
    stream.on("data", (text: string) => this.#take(text));
    stream.on("close", () => (this.isOver = true));
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const { type, object } = JSON.parse(line) as { type: string; object: { metadata: { name: string } } };
      this.types.add(type);
      this.names.push(object.metadata.name);
    }
  }
}

/** Creates objects one after the other, about a hundred a second, until `signal` is aborted. */
async function create(server: Parameters<typeof ask>[0], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const body = { metadata: { generateName: "made-", labels: { test: "initial-events" } } };
    await order(server, { method: "POST", path, body });
    await sleep(5);
  }
}

for (const [title, flags] of [
  ["with the watch cache", []],
  ["with --watch-cache=false", ["--watch-cache=false"]],
] as const)
  real(`${title}, a watch that moves in the middle of ADDED events loses none`, async () => {
    const cluster = await startCluster({ apiservers: 2, flags });
    const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
    const proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
    // Otherwise all clients may be at the apiserver that is ready first.
    await proxy.settled(2);
    const server = { url: proxy.url, caFile: cluster.caFile, token: cluster.token };
    const own = Array.from({ length: clients }, () => new Client(server));
    // The kill must not affect the writer, so it is connected to the other apiserver.
    const stop = new AbortController();
    const writing = create({ ...server, url: cluster.apiserver(1).url }, stop.signal);
    await sleep(500);
    const watches: StateWatch[] = [];
    for (let at = 0; at < watchesPerClient; at += 1) {
      for (const client of own) watches.push(new StateWatch(client));
      await sleep(20);
    }
    await cluster.apiserver(0).kill();
    await sleep(3_000);
    stop.abort();
    await writing;
    await sleep(2_000);
    const { text } = await ask({ ...server, url: cluster.apiserver(1).url }, { path: `${path}?${selector}` });
    const { items } = JSON.parse(text) as { items: { metadata: { name: string } }[] };
    const truth = items.map(({ metadata }) => metadata.name).toSorted();
    const open = watches.filter(({ isOver }) => !isOver);
    const wrong = open.filter(({ names }) => names.toSorted().join() !== truth.join());
    const metrics = await (await fetch(`${proxy.metricsUrl}/metrics`)).text();
    const moved = /^watchkeeper_watch_moves_total\{.*reason="lost".*\} (\d+)/m.exec(metrics)?.[1] ?? "0";
    const ends = metrics.match(/^watchkeeper_watch_ends_total\{.*\} [1-9]\d*$/gm) ?? [];
    figure(
      `${title}: ${truth.length} objects, ${watches.length} watches, ${moved} moved, ${open.length} open, ${wrong.length} wrong; ${ends.join()}`,
    );
    for (const client of own) client.close();
    await proxy.stop();
    await cluster.stop();
    assert.equal([...new Set(watches.flatMap(({ types }) => [...types]))], ["ADDED"]);
    assert.ok(Number(moved) > 0, "a watch has moved");
    assert.equal(
      wrong.map(({ names }) => names.length),
      [],
      `of ${truth.length} objects`,
    );
  });

real(
  "a watch whose objects do not change moves: a bookmark that its client does not get ends the initial events",
  async () => {
    const cluster = await startCluster({ apiservers: 2 });
    const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
    const proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
    // Otherwise all clients may be at the apiserver that is ready first.
    await proxy.settled(2);
    const server = { url: proxy.url, caFile: cluster.caFile, token: cluster.token };
    const direct = { ...server, url: cluster.apiserver(1).url };
    const make = async (): Promise<void> => {
      const body = { metadata: { generateName: "made-", labels: { test: "initial-events" } } };
      await order(direct, { method: "POST", path, body });
    };
    for (let at = 0; at < 20; at += 1) await make();
    const own = Array.from({ length: clients }, () => new Client(server));
    const watches = own.flatMap((client) =>
      Array.from({ length: watchesPerClient }, () => new StateWatch(client)),
    );
    await sleep(1_000);
    await cluster.apiserver(0).kill();
    await sleep(3_000);
    await make();
    await sleep(1_000);
    const metrics = await (await fetch(`${proxy.metricsUrl}/metrics`)).text();
    const moved = /^watchkeeper_watch_moves_total\{.*reason="lost".*\} (\d+)/m.exec(metrics)?.[1] ?? "0";
    const open = watches.filter(({ isOver }) => !isOver).length;
    figure(`${watches.length} watches of 20 objects that do not change: ${moved} moved, ${open} open`);
    for (const client of own) client.close();
    await proxy.stop();
    await cluster.stop();
    assert.ok(Number(moved) > 0, "a watch has moved");
    assert.is(open, watches.length);
    assert.equal([...new Set(watches.map(({ names }) => new Set(names).size))], [21]);
    assert.equal([...new Set(watches.map(({ names }) => names.length))], [21]);
    assert.equal([...new Set(watches.flatMap(({ types }) => [...types]))], ["ADDED"]);
  },
);

test.run();
