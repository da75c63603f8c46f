/**
 * A backend is killed, and half of all watches lose it at once. Measures how long it takes until the watches of the
 * control plane, and then all others, are open at the other backend. No client may notice. `npm run test:mass-move` is
 * the full size, with the limits of docs/performance.md.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { figure } from "../../support/figure.ts";
import { PartProcess, type PartState } from "../../support/herd-part.ts";
import { testPki } from "../../support/pki.ts";
import { ProxyProcess } from "../../support/proxy-process.ts";

const test = suite("attacks/whole/mass-move");

const watches = Number(process.env["WATCHES"] ?? 2000);
const watchesEach = 10;
/** Number of watches of the control plane. About half of them are at each backend. */
const firstWatches = Math.min(400, Math.floor(watches / 5));
/**
 * One watch of the resource has a stream at both backends (D13), so the remaining backend receives no new request for
 * it.
 */
const posted = 1;
const patienceMs = 60_000;
/**
 * The most ms from the death of the backend until the watches of the control plane, and until all watches, have moved.
 * These are the limits for 50,000 watches. A smaller run has the same limit for all its watches, and five times the
 * limit for those of the control plane, because other tests use the processors at the same time.
 */
const mostMs = { first: watches < 50_000 ? 5000 : 1000, all: 8000 };

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

/** Resolves with the ms from `beganAt` until the state of the part meets the condition; infinity after a timeout. */
async function until(
  part: PartProcess,
  beganAt: number,
  holds: (state: PartState) => boolean,
): Promise<number> {
  while (!holds(await part.state())) {
    if (performance.now() - beganAt > patienceMs) return Number.POSITIVE_INFINITY;
    await pause(20);
  }
  return Math.round(performance.now() - beganAt);
}

test(`half of ${watches} watches move from a killed backend, those of the control plane first, and none breaks`, async () => {
  const { authority, serving } = await testPki();
  const { certificate, key } = serving;
  const own = { role: "backend", certificate, key } as const;
  const [stays, dies] = await Promise.all([PartProcess.start(own), PartProcess.start(own)]);
  const targets = [stays, dies].map(({ port }, at) => ({
    name: `cp-${at}`,
    port,
    ca: authority.certificate,
  }));
  const proxy = await ProxyProcess.start({ targets });
  const { port, ca } = proxy.place;
  const part = {
    port,
    ca,
    address: "127.0.0.1",
    bearers: watches / watchesEach,
    watchesEach,
    perSecond: 3000,
  };
  const path = "/api/v1/pods?watch=1&resourceVersion=7&allowWatchBookmarks=true";
  const herd = await PartProcess.start({ role: "herd", ...part, path, firstWatches });
  await until(herd, performance.now(), ({ isDone }) => isDone);
  const [before, lost] = await Promise.all([stays.state(), dies.state()]);
  const cpuBefore = (await proxy.state()).cpuMs;
  const killedAt = performance.now();
  dies.stop();
  const firstMs = await until(
    stays,
    killedAt,
    ({ askedFirst }) => askedFirst - before.askedFirst >= lost.askedFirst - posted,
  );
  const halfWay = (await stays.state()).asked - before.asked;
  const allMs = await until(stays, killedAt, ({ asked }) => asked - before.asked >= lost.asked - posted);
  const cpuMs = Math.round((await proxy.state()).cpuMs - cpuBefore);
  await pause(1000);
  const { counts, closed } = await herd.state();
  figure(
    `${lost.asked} of ${watches} watches moved in ${allMs} ms, the proxy took ${cpuMs} ms of a processor`,
  );
  figure(
    `the ${lost.askedFirst} of the control plane moved in ${firstMs} ms, with ${halfWay - lost.askedFirst} others`,
  );
  figure(`${closed} watches broke`);
  const state = await proxy.state();
  herd.stop();
  stays.stop();
  await proxy.stop();
  assert.equal(state.faults, []);
  assert.equal(counts, { 200: watches });
  assert.is(closed, 0);
  assert.ok(lost.asked > watches / 3, `${lost.asked} of ${watches}`);
  assert.ok(firstMs <= allMs, "the control plane came first");
  assert.ok(firstMs <= mostMs.first, `the control plane moved in ${firstMs} ms, limit ${mostMs.first} ms`);
  assert.ok(allMs <= mostMs.all, `all watches moved in ${allMs} ms, limit ${mostMs.all} ms`);
});

test.run();
