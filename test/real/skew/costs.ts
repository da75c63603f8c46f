/**
 * Measures the CPU time that requests of clients cost a kube-apiserver without a proxy. The weights in
 * src/proxy/request/limits.ts and src/proxy/balance/limits.ts come from these figures. `node test/real/skew/costs.ts`,
 * which takes two minutes.
 */
import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { order } from "../rig/ask.ts";
import { startCluster, tokenOf } from "../rig/cluster.ts";
import { cpuSeconds } from "./cpu.ts";

const configmaps = "/api/v1/namespaces/default/configmaps";
const objects = 300;
const watches = 100;
const measureMs = 10_000;

const cluster = await startCluster({ apiservers: 1, users: { reader: ["readers"] } });
const [apiserver] = cluster.apiservers;
if (apiserver === undefined) throw new Error("no apiserver");
const write = (method: string, body: object, path = configmaps): Promise<unknown> =>
  order(cluster.admin, {
    method,
    path,
    body,
    ...(method === "PATCH" ? { contentType: "application/merge-patch+json" } : {}),
  });
for (let number = 0; number < objects; number += 1)
  await write("POST", { metadata: { name: `thing-${number}` }, data: { text: "x".repeat(1000) } });
const session = connect(apiserver.url, { ca: readFileSync(cluster.caFile) });
session.on("error", () => {});

/** Sends a GET. Resolves with the number of bytes in the body when the response has ended. */
function get(path: string, onData = (_bytes: number): void => {}): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const stream = session.request({ ":path": path, authorization: `Bearer ${tokenOf("reader")}` });
  let bytes = 0;
  stream.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    onData(chunk.length);
  });
  stream.on("error", () => {});
  stream.on("close", () => resolve(bytes));
  return promise;
}

/** Returns the CPU seconds that the apiserver uses while `work` runs, minus those that it uses when idle. */
async function cost(
  work: (until: number) => Promise<number>,
  idle: number,
): Promise<{ cpu: number; count: number }> {
  await sleep(2000);
  const before = cpuSeconds(apiserver?.pid ?? 0);
  const count = await work(performance.now() + measureMs);
  return { cpu: cpuSeconds(apiserver?.pid ?? 0) - before - idle, count };
}

async function loop(path: string, until: number): Promise<number> {
  let count = 0;
  while (performance.now() < until) {
    await get(path);
    count += 1;
  }
  return count;
}

async function writes(until: number): Promise<number> {
  let count = 0;
  for (; performance.now() < until; count += 1) {
    const path = `${configmaps}/thing-${count % objects}`;
    await write("PATCH", { metadata: { annotations: { at: String(performance.now()) } } }, path);
    await sleep(50);
  }
  return count;
}

const micros = (cpu: number, count: number): string => `${((1e6 * cpu) / count).toFixed(0)} µs`;
const idle = (await cost(async () => (await sleep(measureMs), 1), 0)).cpu;
const one = await cost((until) => loop(`${configmaps}/thing-1`, until), idle);
const quorum = await cost((until) => loop(`${configmaps}?limit=1`, until), idle);
const size = await get(`${configmaps}?resourceVersion=0`);
const list = await cost((until) => loop(`${configmaps}?resourceVersion=0`, until), idle);
const alone = await cost(writes, idle);
let events = 0;
for (let number = 0; number < watches; number += 1) void get(`${configmaps}?watch=1`, () => (events += 1));
await sleep(5000);
const open = (await cost(async () => (await sleep(measureMs), 1), idle)).cpu;
events = 0;
const watched = await cost(writes, idle);
const extra = watched.cpu - (alone.cpu * watched.count) / alone.count;
console.log(`idle apiserver: ${((100 * idle * 1000) / measureMs).toFixed(1)} % of a core`);
console.log(`GET of 1.3 kB: ${micros(one.cpu, one.count)} (${one.count})`);
console.log(`LIST with limit=1: ${micros(quorum.cpu, quorum.count)} (${quorum.count})`);
console.log(`LIST of ${size} bytes from the watch cache: ${micros(list.cpu, list.count)} (${list.count})`);
console.log(`PATCH: ${micros(alone.cpu, alone.count)} (${alone.count})`);
console.log(`open watch: ${micros(open / (measureMs / 1000), watches)} a second`);
console.log(`watch event: ${micros(extra, events)} (${events} chunks, ${watches * watched.count} events)`);
session.destroy();
await cluster.stop();
