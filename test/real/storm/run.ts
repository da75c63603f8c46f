/**
 * Random faults every 5 to 15 s while clients of all kinds run. What the clients receive is compared with etcd's
 * record.
 *
 *   npm run test:storm [-- --minutes 30 --seed 1 --apiservers 2 --watches 200 --informers 20 --writes 50 --only "killed,rolled over"]
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Stage } from "../load/stage.ts";
import { type Outcome, Storm } from "../load/storm.ts";
import { troubles } from "../load/troubles.ts";
import { saidSince } from "../rig/said.ts";
import { lateness, misses, summary, type Trouble } from "./tell.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "30" },
    seed: { type: "string", default: String(Date.now() % 100_000) },
    apiservers: { type: "string", default: "2" },
    watches: { type: "string", default: "200" },
    informers: { type: "string", default: "20" },
    writes: { type: "string", default: "50" },
    /** Names of faults, separated by commas. Default: all. */
    only: { type: "string", default: "" },
  },
});
const wanted = values.only.split(",").filter((name) => name !== "");
const drawn = troubles.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
if (drawn.length === 0) throw new Error(`Cannot draw troubles: ${values.only} names none`);

/** One fault at a time, because with faults of both apiservers no backend would be left to continue on. */
async function trouble(stage: Stage, storm: Storm, until: number): Promise<Trouble[]> {
  const played: Trouble[] = [];
  let compactedAt = Date.now();
  while (Date.now() < until) {
    await sleep(5_000 + storm.random.below(10_000));
    const victim = stage.cluster.apiserver(storm.random.below(stage.cluster.apiservers.length));
    const one = storm.random.pick(drawn as [(typeof drawn)[number]]);
    storm.spare(victim);
    played.push({ at: Date.now(), name: `${victim.name}: ${one.name}` });
    console.log(`${new Date().toISOString()} ${victim.name}: ${one.name}`);
    await one.run(victim, storm.random);
    await victim.ready();
    const late = await unsettled(stage);
    if (late !== "") missed.push(late);
    if (Date.now() - compactedAt > 30_000) {
      await storm.compact(1_000);
      compactedAt = Date.now();
    }
  }
  return played;
}

/** Returns why the proxy does not see all apiservers as ready half a minute after the last repair, or "". */
async function unsettled({ proxy, cluster }: Stage): Promise<string> {
  const from = Date.now() - 15_000;
  return proxy.settled(cluster.apiservers.length, 30_000).then(
    () => "",
    (error: Error) => {
      const verdicts = saidSince(proxy.logFile, from).filter(({ msg }) => msg === "backend.changed");
      for (const verdict of verdicts) console.log(JSON.stringify(verdict));
      return error.message;
    },
  );
}

const missed: string[] = [];
console.log(`seed ${values.seed}`);
const stage = await Stage.start({
  apiservers: Number(values.apiservers),
  flags: ["--event-ttl=60s"],
});
let outcome: Outcome;
let played: Trouble[] = [];
try {
  const storm = await Storm.start(stage, {
    watches: Number(values.watches),
    informers: Number(values.informers),
    writesPerSecond: Number(values.writes),
    getsPerSecond: 20,
    others: true,
    namespaces: 8,
    seed: Number(values.seed),
  });
  played = await trouble(stage, storm, Date.now() + Number(values.minutes) * 60_000);
  console.log(`${played.length} troubles`);
  outcome = await storm.stop();
} finally {
  await stage.stop();
}
console.log(summary(outcome));
for (const line of lateness(outcome, played)) console.log(line);
missed.push(...misses(outcome));
for (const miss of missed) console.log(`MISSED ${miss}`);
process.exitCode = missed.length === 0 ? 0 : 1;
