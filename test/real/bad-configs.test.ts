/**
 * A running proxy in front of kube-apiservers, while its configuration file is replaced by 200 bad ones, of which none is
 * a syntax error: each is refused with its line, no GET fails, no watch ends or misses an event, and nothing drains.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { badFiles } from "../support/bad-configs.ts";
import { freePort } from "../support/free-port.ts";
import { seeded } from "../support/random.ts";
import { Asking, isFailure, reasons } from "./load/asking.ts";
import { Client } from "./load/client.ts";
import { compare, Watching } from "./load/watching.ts";
import { Writer } from "./load/writer.ts";
import { order } from "./rig/ask.ts";
import { startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";
import { saidSince } from "./rig/said.ts";

const test = suite("real/bad-configs");
const real = testWith(test, clusterNeeds);

const count = 200;
const clients = 4;
const watchesPerClient = 5;
const namespace = "bad-configs";
const path = `/api/v1/namespaces/${namespace}/configmaps`;

real(
  "through 200 bad files, no GET fails, no watch ends or misses an event, and nothing drains",
  async () => {
    const cluster = await startCluster({ apiservers: 2 });
    const { folder, pki, frontProxy, caFile, token } = cluster;
    const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
    const admin = {
      address: `127.0.0.1:${await freePort()}`,
      metricsAddress: `127.0.0.1:${await freePort()}`,
    };
    const upstream = { caFile: pki.ca.certFile, serverName: "kubernetes.default.svc", frontProxy };
    const proxy = await Proxy.start({
      folder,
      pki,
      backends,
      listener: { identity: { clientCerts: "FrontProxy" } },
      listenerTls: { clientCAFile: pki.ca.certFile },
      config: { clusters: [{ name: "default", backends, tls: upstream }], admin },
    });
    const server = { url: proxy.url, caFile, token };
    const writer = new Writer({ ...server, url: cluster.apiserver(0).url }, [namespace], seeded(1));
    await writer.fill();
    const { metadata } = JSON.parse(await order(server, { path })) as {
      metadata: { resourceVersion: string };
    };
    const version = Number(metadata.resourceVersion);
    const direct = new Watching(new Client({ ...server, url: cluster.apiserver(0).url }), path, version);
    const callers = Array.from({ length: clients }, () => new Client(server));
    const watches = callers.flatMap((client) =>
      Array.from({ length: watchesPerClient }, () => new Watching(client, path, version)),
    );
    writer.start(20);
    const asking = new Asking(callers, 50, (number) => ({
      tag: number,
      question: { path: number % 4 === 0 ? path : `${path}/thing-${number % 20}-s${number % 4}` },
    }));
    const reload = async (): Promise<{ readonly status: number; readonly said: string }> => {
      const headers = { "content-type": "application/json", "x-watchkeeper-operator": "test" };
      const url = `http://${admin.address}/api/v1/reload`;
      const answer = await fetch(url, { method: "POST", headers, body: "{}" });
      return { status: answer.status, said: await answer.text() };
    };
    const file = join(folder, "watchkeeper.yaml");
    const good = readFileSync(file, "utf8");
    const bad = badFiles(JSON.parse(good) as object, count);
    const beganAt = Date.now();
    const wrong: string[] = [];
    for (const [at, text] of bad.entries()) {
      writeFileSync(file, text);
      if (at % 10 === 0) proxy.signal("SIGHUP");
      // The poll reads the file, too, whenever it has been the same for a second.
      await sleep(at % 40 === 0 ? 2_500 : 50);
      const { status, said } = await reload();
      if (status !== 422 || !/watchkeeper\.yaml:\d+:\d+: /.test(said))
        wrong.push(`${status} ${said}: ${text}`);
    }
    writeFileSync(file, good);
    const { status: last } = await reload();
    const tookMs = Date.now() - beganAt;
    await asking.stop();
    writer.stop();
    await sleep(2_000);
    const heard = asking.heard.map((one) => one.heard);
    const failed = heard.filter(isFailure);
    const slowestMs = Math.max(...heard.map(({ endedAt, askedAt }) => endedAt - askedAt));
    for (const watch of [direct, ...watches]) await watch.stop();
    for (const client of callers) client.close();
    const ends = watches.flatMap((watch) => watch.ends);
    const differences = watches.map((watch) => compare(watch.events, direct.events));
    const worstMs = Math.max(...differences.map((one) => one.worstMs));
    const notSame = differences.filter(
      ({ missing, doubled, reordered }) => missing + doubled + reordered > 0,
    );
    const said = saidSince(proxy.logFile, beganAt);
    const refusals = said.filter(({ msg }) => msg === "config.refused").length;
    const faults = said.filter(({ msg }) => /internal\.error|drain\.started|cluster\.removed/.test(msg));
    const { isRunning } = proxy;
    const code = await proxy.stop();
    await cluster.stop();
    figure(
      `${bad.length} bad files in ${Math.round(tookMs / 1_000)} s, ${refusals} refusals, ${wrong.length} not named; ` +
        `${heard.length} GETs, ${failed.length} failed, slowest ${slowestMs} ms; ${watches.length} watches with ` +
        `${direct.events.length} events each, ${ends.length} ended, ${notSame.length} differ, worst delay ${worstMs} ms`,
    );
    assert.is(bad.length, count);
    assert.equal(wrong, []);
    assert.is(last, 200);
    assert.ok(refusals >= count, `${refusals} refusals`);
    assert.is(failed.length, 0, reasons(failed));
    assert.equal(ends, []);
    assert.equal(notSame, []);
    assert.ok(direct.events.length > 100, "the objects changed");
    assert.equal(faults, []);
    assert.ok(isRunning, "the proxy runs until it is told to stop");
    assert.is(code, 0);
  },
);

test.run();
