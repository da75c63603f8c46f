/**
 * npm run bench [-- SCENARIO ...] [--peers a,b] [--rounds N] [--quick] [--also NAME=FOLDER]
 *
 * Compares watchkeeper with other proxies. Each round measures every peer once (A B C, A B C, ...), and the result is
 * the median of all rounds. --also adds another checkout of watchkeeper as a peer, for a comparison before and after a
 * change in one run.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Peer } from "./peer.ts";
import { direct } from "./peers/direct.ts";
import { envoy } from "./peers/envoy.ts";
import { haproxy } from "./peers/haproxy.ts";
import { http2Proxy } from "./peers/http2-proxy.ts";
import { nghttpx } from "./peers/nghttpx.ts";
import { nodeHttp2 } from "./peers/node-http2.ts";
import { plain, watchkeeperAt } from "./peers/watchkeeper.ts";
import { pinSelf, progress } from "./processes.ts";
import { type Medians, mediansOf, tableOf } from "./report.ts";
import { startRig } from "./rig.ts";
import { fitFor, runRounds } from "./rounds.ts";
import type { Scenario } from "./scenario.ts";
import { scenario as fanout } from "./scenarios/fanout.ts";
import { scenario as handshake } from "./scenarios/handshake.ts";
import { scenario as idle } from "./scenarios/idle.ts";
import { scenario as idleClients } from "./scenarios/idle-clients.ts";
import { scenario as list } from "./scenarios/list.ts";
import { scenario as medium } from "./scenarios/medium.ts";
import { scenario as passthrough } from "./scenarios/passthrough.ts";
import { scenario as rate } from "./scenarios/rate-1000.ts";
import { scenario as small8x16 } from "./scenarios/small-8x16.ts";
import { scenario as small64x1 } from "./scenarios/small-64x1.ts";
import { scenario as small256x1 } from "./scenarios/small-256x1.ts";
import { scenario as upload } from "./scenarios/upload.ts";
import { scenario as watches } from "./scenarios/watches.ts";
import { verdicts } from "./targets.ts";
import { requireTools } from "./tools.ts";

const scenarios = [
  small8x16,
  small64x1,
  small256x1,
  medium,
  rate,
  list,
  upload,
  passthrough,
  handshake,
  watches,
  fanout,
  idleClients,
  idle,
];
const ours = "watchkeeper";
const here = join(import.meta.dirname, "..");
/**
 * Variants of watchkeeper that run only if --peers names them: without observers, with two and four workers, with a log
 * line for every request, and with traces.
 */
const tracing = { endpoint: "http://127.0.0.1:4318/v1/traces" };
const selves = [
  plain,
  watchkeeperAt("watchkeeper-workers", here, { workers: 2 }),
  watchkeeperAt("watchkeeper-workers-4", here, { workers: 4 }),
  watchkeeperAt("watchkeeper-loud", here, { logging: { accessLog: "All" } }),
  watchkeeperAt("watchkeeper-traced", here, { tracing: { ...tracing, samplingRatePerMillion: 1000 } }),
  watchkeeperAt("watchkeeper-traced-all", here, {
    tracing: { ...tracing, samplingRatePerMillion: 1_000_000 },
  }),
];

const { values, positionals } = parseArgs({
  options: {
    peers: { type: "string" },
    also: { type: "string", multiple: true, default: [] },
    rounds: { type: "string", default: "5" },
    quick: { type: "boolean", default: false },
    spread: { type: "boolean", default: false },
  },
  allowPositionals: true,
});

const rounds = values.quick ? 1 : Number(values.rounds);

function usageError(message: string): never {
  process.stderr.write(`bench: ${message}\n`);
  process.exit(2);
}

function chosenScenarios(): readonly Scenario[] {
  const unknown = positionals.filter((name) => !scenarios.some((scenario) => scenario.name === name));
  if (unknown.length > 0)
    usageError(`unknown ${unknown.join(", ")}: there are ${scenarios.map(({ name }) => name).join(", ")}`);
  return positionals.length === 0 ? scenarios : scenarios.filter(({ name }) => positionals.includes(name));
}

/** Returns the peers that can run. For each that cannot, says how to install it. */
function chosenPeers(): readonly Peer[] {
  const others = values.also.map((pair) => {
    const [name = "", folder = ""] = pair.split("=");
    return watchkeeperAt(name, folder);
  });
  const all = [
    watchkeeperAt(ours, here),
    ...others,
    nghttpx,
    haproxy,
    envoy,
    nodeHttp2,
    http2Proxy,
    direct,
    ...selves,
  ];
  const wanted = values.peers?.split(",");
  const unknown = wanted?.filter((name) => !all.some((peer) => peer.name === name)) ?? [];
  if (unknown.length > 0)
    usageError(`unknown ${unknown.join(", ")}: there are ${all.map(({ name }) => name).join(", ")}`);
  return all
    .filter((peer) => (wanted === undefined ? !selves.includes(peer) : wanted.includes(peer.name)))
    .filter((peer) => {
      const missing = peer.missing();
      if (missing !== undefined) progress(`omitted: ${peer.name}, to have it: ${missing}\n`);
      return missing === undefined;
    });
}

requireTools();
const picked = chosenScenarios();
const peers = chosenPeers();
pinSelf();
const rig = await startRig();
const medians: Medians = {};
const report: Record<string, unknown> = {
  peers: Object.fromEntries(peers.map((peer) => [peer.name, peer.settings])),
};
for (const scenario of picked) {
  const fit = fitFor(scenario, peers);
  const { figures, othersCores } = await runRounds({
    rig,
    scenario,
    peers: fit,
    rounds,
    isQuick: values.quick,
  });
  const { name, about } = scenario;
  medians[name] = mediansOf(scenario, figures);
  report[name] = { about, othersCores, medians: medians[name], rounds: Object.fromEntries(figures) };
  const busy =
    othersCores > 0.1 ? `\nDisturbed: others used ${othersCores.toFixed(1)} cores meanwhile.\n` : "";
  process.stdout.write(`\n**${name}**: ${about}\n\n${tableOf(scenario, figures, ours)}\n${busy}\n`);
}
await rig.stop();
const results = join(here, "bench/results");
mkdirSync(results, { recursive: true });
const file = join(results, `${new Date().toISOString().replaceAll(":", "-").slice(0, 19)}.json`);
writeFileSync(file, `${JSON.stringify(report, undefined, 2)}\n`);
process.stdout.write(`${verdicts(ours, medians).join("\n")}\n\n${file.replace(`${here}/`, "")}\n`);
process.exit(0);
