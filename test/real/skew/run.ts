/**
 * How evenly three apiservers are loaded while each of them is restarted in turn, through watchkeeper, HAProxy and
 * Envoy. The last apiserver may use half a core only. `npm run test:skew [-- --only watchkeeper]`; it takes 8 minutes
 * for each proxy.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type Kind, kinds, lackedBy, startThrough } from "../operators/through.ts";
import { order } from "../rig/ask.ts";
import { type Cluster, startCluster } from "../rig/cluster.ts";
import { clusterNeeds, lacking } from "../rig/parts.ts";
import { markdown, quantile } from "../rig/table.ts";
import { cpuSeconds, HalfCore } from "./cpu.ts";
import { Crowd, clientCount, objects, userOf } from "./crowd.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: kinds.join(",") },
    /** Seconds after each restart until the measurement begins, and the duration of the measurement in seconds. */
    settle: { type: "string", default: "60" },
    measure: { type: "string", default: "60" },
  },
});
const [settleMs, measureMs] = [1000 * Number(values.settle), 1000 * Number(values.measure)];
const wanted = kinds.filter((kind) => values.only.split(",").includes(kind));
/** The load counts as even if no apiserver uses more than this multiple of another one's CPU time. */
const evenSkew = 1.25;

async function cpuOver(cluster: Cluster, ms: number): Promise<readonly number[]> {
  const read = (): readonly number[] => cluster.apiservers.map(({ pid }) => cpuSeconds(pid));
  const before = read();
  await sleep(ms);
  return read().map((now, at) => now - (before[at] ?? 0));
}

/** Sends ten writes a second through the proxy, so that the proxy knows of all load on the apiservers. */
async function write(cluster: Cluster, url: string, signal: AbortSignal): Promise<void> {
  const through = { ...cluster.admin, url };
  for (let number = 0; !signal.aborted; number += 1) {
    const path = `/api/v1/namespaces/default/configmaps/thing-${number % objects}`;
    const metadata = { annotations: { count: String(number) } };
    const question = {
      method: "PATCH",
      path,
      body: { metadata },
      contentType: "application/merge-patch+json",
    };
    await order(through, question).catch(() => {});
    await sleep(100);
  }
}

/** Adding a process that is already in the group changes nothing. */
function limitLast({ apiservers }: Cluster, half: HalfCore | undefined): void {
  const last = apiservers.at(-1);
  if (last !== undefined) half?.add(last.pid);
}

async function rowsThrough(cluster: Cluster, kind: Kind, half: HalfCore | undefined): Promise<Row[]> {
  const proxy = await startThrough(kind, cluster);
  await proxy.settled(cluster.apiservers.length);
  const crowd = new Crowd(cluster, proxy.url);
  const writer = new AbortController();
  const writing = write(cluster, proxy.url, writer.signal);
  const rows: Row[] = [];
  try {
    for (const restarted of [undefined, ...cluster.apiservers]) {
      const before = { ...crowd.breaks };
      await restarted?.terminate();
      await restarted?.restart();
      limitLast(cluster, half);
      await sleep(settleMs);
      crowd.take();
      const cpu = await cpuOver(cluster, measureMs);
      const { times, events } = crowd.take();
      const broken = (["connections", "requests", "watches"] as const).map(
        (what) => crowd.breaks[what] - before[what],
      );
      rows.push({ kind, restarted: restarted?.name ?? "–", cpu, times, events, broken });
      process.stderr.write(`${lineOf(rows.at(-1) as Row).join(" | ")}\n`);
    }
  } finally {
    crowd.stop();
    writer.abort();
    await writing;
    await proxy.stop();
  }
  return rows;
}

type Row = {
  readonly kind: Kind;
  readonly restarted: string;
  readonly cpu: readonly number[];
  readonly times: readonly number[];
  readonly events: number;
  readonly broken: readonly number[];
};

const skewOf = ({ cpu }: Row): number => Math.max(...cpu) / Math.min(...cpu);

function lineOf(row: Row): readonly string[] {
  const { kind, restarted, cpu, times, events, broken } = row;
  const [connections, requests, watches] = broken;
  return [
    kind,
    restarted,
    cpu.map((one) => one.toFixed(1)).join(" / "),
    skewOf(row).toFixed(2),
    `${quantile(times, 0.5).toFixed(0)} ms`,
    `${quantile(times, 0.99).toFixed(0)} ms`,
    String(Math.round((1000 * events) / measureMs)),
    `${connections} / ${requests} / ${watches}`,
  ];
}

const head = [
  "through",
  "restarted",
  "CPU of cp-1 / cp-2 / cp-3, s",
  "skew",
  "GET, median",
  "GET, p99",
  "events/s",
  "ended connections / failed requests / ended watches",
];

async function main(): Promise<number> {
  const missing = clusterNeeds.map((need) => lacking(need)).filter((one) => one !== undefined);
  if (missing.length > 0) {
    process.stderr.write(`${missing.join("\n")}\n`);
    return 1;
  }
  const named = Object.fromEntries(Array.from({ length: clientCount }, (_, at) => [userOf(at), ["readers"]]));
  const cluster = await startCluster({
    apiservers: 3,
    users: named,
    etcdFlags: ["--watch-progress-notify-interval=5s"],
  });
  const half = HalfCore.make();
  if (half === undefined)
    process.stderr.write("No control group can be made: all apiservers have the whole CPU\n");
  limitLast(cluster, half);
  const rows: Row[] = [];
  try {
    for (let number = 0; number < objects; number += 1)
      await order(cluster.admin, {
        method: "POST",
        path: "/api/v1/namespaces/default/configmaps",
        body: { metadata: { name: `thing-${number}` }, data: { text: "x".repeat(1000) } },
      });
    for (const kind of wanted) {
      const lack = lackedBy(kind);
      if (lack === undefined) rows.push(...(await rowsThrough(cluster, kind, half)));
      else process.stderr.write(`${kind} is omitted: ${lack}\n`);
    }
    process.stdout.write(`${clientCount} clients\n${markdown(head, rows.map(lineOf))}\n`);
    const own = rows.filter(({ kind }) => kind === "watchkeeper");
    const isEven = own.every((row) => skewOf(row) <= evenSkew && Math.max(...row.broken) === 0);
    return isEven ? 0 : 1;
  } finally {
    await cluster.stop();
    half?.remove();
  }
}

process.exitCode = await main();
