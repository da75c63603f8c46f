/**
 * node bench/mixed-load.ts [--minutes 30] [--at FOLDER]
 *
 * Runs all kinds of load through one proxy at once: gets, lists, uploads, watches, execs, and clients that connect and
 * disconnect. Ends with `figure:` lines. The exit code is 1 if memory grew, a response was wrong, or the proxy's event
 * loop was slow.
 */
import { connect } from "node:net";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Probed } from "./gc-probe.ts";
import { asker, get, list, post } from "./mixed/asker.ts";
import { dialExec, execer } from "./mixed/execer.ts";
import { type Ground, groundOf } from "./mixed/ground.ts";
import { watcher } from "./mixed/watcher.ts";
import type { Peer } from "./peer.ts";
import { watchkeeperAt } from "./peers/watchkeeper.ts";
import { pinSelf, progress, sleep } from "./processes.ts";
import { median } from "./report.ts";
import { startRig } from "./rig.ts";
import { requireTools } from "./tools.ts";

const bounds = { heapGrowthMiB: 2, rssGrowthMiB: 32, errors: 0, uncaught: 0, loopP99Ms: 10 };

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "30" },
    at: { type: "string", default: join(import.meta.dirname, "..") },
  },
});
const lastsMs = Number(values.minutes) * 60_000;
/**
 * Time, in ms, before the first sample. By then, V8 has compiled the code, and pools, upstream connections and caches
 * have reached their size.
 */
const warmMs = Math.min(180_000, lastsMs / 3);
const sampleMs = Math.min(15_000, lastsMs / 20);

/** Returns the peer, changed so that Node loads the GC probe before the proxy. */
function probed(peer: Peer): Peer {
  return {
    ...peer,
    command(place) {
      const [node = "", ...rest] = peer.command(place) ?? [];
      return [node, "--expose-gc", "--import", join(import.meta.dirname, "gc-probe.ts"), ...rest];
    },
  };
}

function probe(path: string): Promise<Probed> {
  return new Promise((resolve, reject) => {
    let said = "";
    connect(path)
      .on("data", (chunk) => {
        said += chunk.toString();
      })
      .on("error", reject)
      .on("end", () => resolve(JSON.parse(said) as Probed));
  });
}

/**
 * Starts clients that use about half a core of the proxy. That is enough to reveal problems, but not so much that the
 * load's own core becomes the bottleneck.
 */
async function startActors(ground: Ground): Promise<Promise<void>[]> {
  const exec = await dialExec(ground);
  exec?.destroy();
  if (exec === undefined) process.stdout.write("skip: execs, the proxy does not upgrade\n");
  const times = (count: number, actor: () => Promise<void>): Promise<void>[] =>
    Array.from({ length: count }, actor);
  return [
    ...times(20, () => asker(ground, 20, get(ground))),
    ...times(2, () => asker(ground, 0.5, list(ground))),
    ...times(4, () => asker(ground, 1, post(ground))),
    ...times(10, () => watcher(ground, 20)),
    ...times(exec === undefined ? 0 : 5, () => execer(ground)),
  ];
}

async function fanOut(control: string, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    await (await fetch(`http://${control}/fanout?size=1024`, { method: "POST" })).text();
    await sleep(200);
  }
}

const mib = (bytes: number): number => bytes / 2 ** 20;

type Judged = { readonly text: string; readonly isMet: boolean };

function judge(samples: readonly Probed[], ground: Ground): Judged[] {
  const last = samples.at(-1);
  const [first, end] = [samples.slice(0, 3), samples.slice(-3)];
  const heapOf = (some: readonly Probed[]): number => mib(median(some.map(({ heapBytes }) => heapBytes)));
  const growth = heapOf(end) - heapOf(first);
  const warmRss = mib(median(first.map(({ rssBytes }) => rssBytes)));
  const topRss = mib(Math.max(...samples.map(({ rssBytes }) => rssBytes)));
  const p99 = last?.loopP99Ms ?? Number.NaN;
  const uncaught = last?.uncaught ?? Number.NaN;
  const errors = ground.errors.length;
  return [
    {
      text: `live heap ${heapOf(first).toFixed(1)} -> ${heapOf(end).toFixed(1)} MiB (at most +${bounds.heapGrowthMiB})`,
      isMet: growth <= bounds.heapGrowthMiB,
    },
    {
      text: `RSS ${warmRss.toFixed(0)} MiB warm, ${topRss.toFixed(0)} at most (bound +${bounds.rssGrowthMiB})`,
      isMet: topRss - warmRss <= bounds.rssGrowthMiB,
    },
    {
      text: `event loop p99 ${p99.toFixed(1)} ms (at most ${bounds.loopP99Ms})`,
      isMet: p99 <= bounds.loopP99Ms,
    },
    { text: `uncaught ${uncaught} (at most ${bounds.uncaught})`, isMet: uncaught <= bounds.uncaught },
    { text: `errors ${errors} (at most ${bounds.errors})`, isMet: errors <= bounds.errors },
  ];
}

requireTools();
pinSelf();
const rig = await startRig();
const probePath = join(rig.dir, "gc-probe");
process.env["WATCHKEEPER_GC_PROBE"] = probePath;
const proxy = await rig.launch(probed(watchkeeperAt("watchkeeper", values.at)), "live");
delete process.env["WATCHKEEPER_GC_PROBE"];
const stop = new AbortController();
const ground = groundOf(proxy.port, join(rig.dir, "ca.crt"), rig.uploadFile, stop.signal);
const actors = [...(await startActors(ground)), fanOut(rig.control, stop.signal)];
const began = performance.now();
const samples: Probed[] = [];
while (performance.now() - began < lastsMs && !proxy.isOver()) {
  await sleep(sampleMs);
  if (proxy.isOver()) break;
  const sample = await probe(probePath);
  const passed = performance.now() - began;
  if (passed >= warmMs) samples.push(sample);
  progress(
    `${(passed / 60_000).toFixed(1)} min  heap ${mib(sample.heapBytes).toFixed(1)} MiB  RSS ${mib(sample.rssBytes).toFixed(0)} MiB  ` +
      `loop p99 ${sample.loopP99Ms.toFixed(1)} ms  errors ${ground.errors.length}  ${JSON.stringify(ground.done)}\n`,
  );
}
if (proxy.isOver()) ground.errors.push(`the proxy ended:\n${proxy.said()}`);
stop.abort();
await Promise.race([Promise.all(actors), sleep(5_000)]);
await proxy.stop();
await rig.stop();
const judged = judge(samples, ground);
for (const error of ground.errors.slice(0, 10)) process.stdout.write(`error: ${error}\n`);
process.stdout.write(`figure: ${values.minutes} min of mixed load: ${JSON.stringify(ground.done)}\n`);
for (const { text, isMet } of judged) process.stdout.write(`figure: ${isMet ? "✓" : "✗"} ${text}\n`);
process.exit(judged.every(({ isMet }) => isMet) ? 0 : 1);
