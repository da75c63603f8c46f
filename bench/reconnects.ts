/**
 * node bench/reconnects.ts [--clients 5000]
 *
 * Thousands of clients connect at once, as after a restart of a network device: each makes a full TLS handshake and
 * reads the proxy's SETTINGS. Meanwhile, the backend sends events to 100 watches of ten other clients, the next event
 * when all watches have got the one before. Prints how long an event takes to reach all 100 watches, before and during
 * the storm. The storm's clients share a core with the backend and the other clients, and have the lowest priority there.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { watchkeeperAt } from "./peers/watchkeeper.ts";
import { pinSelf, sleep } from "./processes.ts";
import { startRig, type Talk } from "./rig.ts";
import { liveTools, requireTools } from "./tools.ts";

const others = { clients: 10, watches: 10 };
const samplesBefore = 200;
const pauseMs = 20;

const { values } = parseArgs({ options: { clients: { type: "string", default: "5000" } } });
requireTools(liveTools);
pinSelf();
const rig = await startRig();
const proxy = await rig.launch(watchkeeperAt("watchkeeper", join(import.meta.dirname, ".."), {}), "live");
const numbers = Object.entries(others).flatMap(([key, value]) => [`-${key}`, String(value)]);
const talk = rig.talk(["watch", "-to", `localhost:${proxy.port}`, "-control", rig.control, ...numbers]);
await talk.next();
talk.say("open");
await talk.next();

const before: number[] = [];
while (before.length < samplesBefore) before.push(await eventMs(talk));
const during: number[] = [];
const cpuBefore = proxy.cpuMs();
const words = ["-to", `localhost:${proxy.port}`, "-count", values.clients, "-at", values.clients];
const storm = rig.ask(["shake", ...words]);
let isOver = false;
const watchStorm = async (): Promise<Record<string, number>> => storm.finally(() => void (isOver = true));
const [said] = await Promise.all([watchStorm(), sampleUntil(() => isOver)]);
const cpu = proxy.cpuMs() - cpuBefore;
process.stdout.write(
  `figure: ${values.clients} handshakes at once took ${(said["seconds"] ?? 0).toFixed(1)} s and ${cpu} ms of CPU; ` +
    `an event to ${others.clients * others.watches} watches took ${summaryOf(before)} before, ${summaryOf(during)} meanwhile\n`,
);
await talk.stop();
await proxy.stop();
await rig.stop();
process.exit(0);

/** Returns the milliseconds until an event of 1 kB has reached all watches. */
async function eventMs(load: Talk): Promise<number> {
  await sleep(pauseMs);
  load.say("fanout 1");
  const { seconds } = await load.next();
  return Number(seconds) * 1000;
}

function summaryOf(all: readonly number[]): string {
  const sorted = all.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(1);
  return `${at(0.5)} ms (p99 ${at(0.99)}, at most ${at(1)}; ${sorted.length} events)`;
}

async function sampleUntil(isEnough: () => boolean): Promise<void> {
  while (!isEnough()) during.push(await eventMs(talk));
}
