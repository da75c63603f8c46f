/**
 * node bench/sizing.ts [--nodes 100,500,1000,5000]
 *
 * Measures what a proxy needs for the kubelets of a cluster: each node is a client with ten watches. Prints the
 * resident memory, and the CPU time while the watches are open and no events arrive. Takes six minutes.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openWatches } from "./many-watches.ts";
import { cpuMs, pinSelf, rssKb, sleep } from "./processes.ts";
import { liveTools, requireTools } from "./tools.ts";

const watchesOfNode = 10;
const measureMs = 20_000;

const { values } = parseArgs({ options: { nodes: { type: "string", default: "100,500,1000,5000" } } });
requireTools(liveTools);
pinSelf();
for (const nodes of values.nodes.split(",").map(Number)) {
  const at = join(import.meta.dirname, "..");
  const proxy = await openWatches({ watches: nodes * watchesOfNode, each: watchesOfNode, at });
  const opened = cpuMs(proxy.pid);
  await sleep(measureMs);
  const percent = (100 * (cpuMs(proxy.pid) - opened)) / measureMs;
  const megabytes = rssKb(proxy.pid) / 1024;
  process.stdout.write(
    `figure: ${nodes} nodes: ${megabytes.toFixed(0)} MB, ${percent.toFixed(1)} % of a core, ${(opened / 1000).toFixed(1)} s of CPU to start and open\n`,
  );
  await proxy.stop();
}
process.exit(0);
