/**
 * A watch of a resource that only the newer of two apiservers serves, when that apiserver dies. No other apiserver can
 * continue the watch, so it ends between two events, and the proxy logs why. When its apiserver is back, a new watch
 * works.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "../load/client.ts";
import { Watching } from "../load/watching.ts";
import { ask, order } from "../rig/ask.ts";
import { startCluster } from "../rig/cluster.ts";
import { Proxy } from "../rig/proxy.ts";
import { saidSince } from "../rig/said.ts";
import { pathsOf } from "./apis.ts";
import { kindsOf, type Mix, nameOf } from "./mixes.ts";

export type OnlyNew = {
  readonly name: string;
  readonly path: string;
  readonly endedMs: number;
  readonly end: string;
  readonly reason: string;
  readonly wrong: readonly string[];
};

/** Longer than the proxy tries to resume a watch before it ends it (watch.md §5.2). */
const mostMs = 20_000;

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<string[]> {
  for (const deadline = Date.now() + mostMs; !(await isSo()); await sleep(100))
    if (Date.now() > deadline) return [`waited ${mostMs} ms in vain: ${what}`];
  return [];
}

/** Runs the test. Resolves with undefined if the newer version serves no resource that the older one lacks. */
export async function playOnlyNew([old, now]: Mix): Promise<OnlyNew | undefined> {
  const cluster = await startCluster({ apiservers: kindsOf([now, old]) });
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  const proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
  const server = { ...cluster.admin, url: proxy.url };
  const client = new Client(server);
  try {
    await proxy.settled(2);
    const newer = { ...cluster.admin, url: cluster.apiserver(0).url };
    const [served, known] = [await pathsOf(newer), await pathsOf(cluster.admin)];
    const path = [...served].find((one) => !known.has(one));
    if (path === undefined) return undefined;
    const text = await order(newer, { path });
    const version = Number(/"resourceVersion":"(\d+)"/.exec(text)?.[1]);
    const watch = new Watching(client, path, version);
    await sleep(3_000);
    const wrong = watch.ends.map(({ how, detail }) => `ended early: ${how} ${detail}`);
    const killedAt = Date.now();
    await cluster.apiserver(0).kill();
    wrong.push(...(await until("the watch ends", () => watch.ends.length > 0)));
    const end = watch.ends[0];
    if (end?.how !== "clean") wrong.push(`the watch ended as ${end?.how} ${end?.detail}`);
    await sleep(2_000);
    const told = saidSince(proxy.logFile, killedAt).find(({ msg }) => msg === "watches.ended");
    if (told === undefined) wrong.push("no reason is told");
    await cluster.apiserver(0).restart();
    await proxy.settled(2, 30_000);
    const isServed = async (): Promise<boolean> => (await ask(server, { path })).status === 200;
    wrong.push(...(await until(`${path} is served again`, isServed)));
    await sleep(2_000);
    const endsThen = watch.ends.length;
    await sleep(3_000);
    if (watch.ends.length > endsThen) wrong.push("the watch does not come back with its apiserver");
    await watch.stop();
    return {
      name: nameOf([old, now]),
      path,
      endedMs: (end?.at ?? Number.NaN) - killedAt,
      end: end?.how ?? "none",
      reason: told === undefined ? "none" : String(told["reason"]),
      wrong,
    };
  } finally {
    client.close();
    await proxy.stop();
    await cluster.stop();
  }
}
