/**
 * After a restart, the proxy gets requests of hundreds of bearer tokens that it has not seen before. Each bearer first
 * opens ten watches. One test runs these clients alone; another runs them beside a flood of watches with invented
 * tokens and without a token. (`attacks/whole/herd` is the same test in full size.) HERD_BEARERS and HERD_RATE set
 * larger numbers.
 */
import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { PartProcess, told } from "../support/herd-part.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/herd");
const real = testWith(test, clusterNeeds);
const bearers = Number(process.env["HERD_BEARERS"] ?? 500);
const perSecond = Number(process.env["HERD_RATE"] ?? 2000);
const watchesEach = 10;
/** Client addresses, one for each test, so that the proxy has not seen the bearers of a test before. */
const herds = ["127.0.0.1", "127.0.0.5"];
const patienceMs = 120_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

let cluster: Cluster;

test.before(async () => {
  if (!real.canRun) return;
  const named = herds.flatMap((address) =>
    Array.from({ length: bearers }, (_, index) => `good-${address}-${index}`),
  );
  cluster = await startCluster({ apiservers: 2, bearers: ["good-old", ...named] });
});

test.after(async () => {
  if (real.canRun) await cluster.stop();
});

/** Runs the clients against a proxy that has just been started. */
async function play(address: string, hasFlood: boolean): Promise<void> {
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  const proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
  const place = { port: proxy.port, ca: readFileSync(cluster.caFile, "utf8") };
  const proven = await PartProcess.start({ role: "proven", ...place, address: "127.0.0.3", perSecond: 20 });
  await pause(1000);
  const flood = hasFlood
    ? await PartProcess.start({ role: "flood", ...place, address: "127.0.0.2", perSecond: 200 })
    : undefined;
  const beganAt = performance.now();
  const herd = await PartProcess.start({
    role: "herd",
    ...place,
    address,
    bearers,
    watchesEach,
    perSecond,
  });
  let state = await herd.state();
  while (!state.isDone && performance.now() - beganAt < patienceMs) {
    await pause(100);
    state = await herd.state();
  }
  figure(`${state.asked} watches in ${Math.round(performance.now() - beganAt)} ms: ${told(state)}`);
  const [served, flooded] = await Promise.all([proven.state(), flood?.state()]);
  figure(`proven ${told(served)}${flooded === undefined ? "" : `; flood ${told(flooded)}`}`);
  for (const part of [herd, proven, flood]) part?.stop();
  await proxy.stop();
  assert.equal(state.counts, { 200: bearers * watchesEach });
  assert.equal(Object.keys(served.counts), ["200"]);
}

real(
  `${bearers} new bearers begin with ${watchesEach} watches each at ${perSecond} a second: none is refused`,
  () => play("127.0.0.1", false),
);

real("nor beside a flood of invented tokens and anonymous watches", () => play("127.0.0.5", true));

test.run();
