/**
 * npm run test:soak [-- --minutes 120 --seed 1] runs mixed load in rounds, with faults of apiservers and reloads of the
 * configuration and certificates. After each round all clients but one leave, and the test counts what the proxy still
 * holds: heap after a forced garbage collection, descriptors, upstream connections, streams, sessions, timers. It exits
 * with 1 if a figure does not return to its value after the warm-up rounds, or if the client that stays has missed an
 * event.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Beat, beatInto } from "../../demo/story/beat.ts";
import { DemoClient } from "../../demo/story/client.ts";
import { wallClock } from "../../src/base/clock.ts";
import { seeded } from "../support/random.ts";
import { Crowd } from "./crowd.ts";
import { Elder } from "./elder.ts";
import { newFelt, told } from "./felt.ts";
import { type Figures, figuresOf, line, notBack } from "./figures.ts";
import { Stage } from "./stage.ts";
import { Troubles } from "./troubles.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "120" },
    seed: { type: "string", default: String(Date.now() % 100_000) },
  },
});
const lastsMs = Number(values.minutes) * 60_000;
/**
 * Unused upstream connections are closed after a minute (upstreamLimits.idleConnectionMs), and lost ones are reopened.
 * The wait must be longer than that.
 */
const calmMs = 100_000;
const roundMs = Math.min(300_000, lastsMs / 4);
/** The proxy's bounded memory of the past is full after a quarter of the run; a quarter of an hour is always enough. */
const warmMs = Math.min(900_000, lastsMs / 4);

const say = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

/**
 * Waits until only the elder (the watch that stays) is left and the upstream connections are at their baseline, or
 * until `calmMs` have passed.
 */
async function calm(stage: Stage, base: Figures | undefined): Promise<Figures> {
  const until = performance.now() + calmMs;
  for (;;) {
    const now = await figuresOf(stage);
    const wanted = base ?? {
      ...now,
      sessions: 1,
      plain: 0,
      watches: 1,
      tunnels: 0,
      passages: 0,
      buffered: 0,
    };
    const left = performance.now() < until ? notBack(wanted, now) : [];
    // The first time there is no baseline, so the wait is for idle upstream connections to close.
    const isAtRest = base === undefined ? now.connections <= restingConnections : true;
    if ((left.length === 0 && isAtRest) || performance.now() >= until) return now;
    await sleep(2000);
  }
}
/** The most upstream connections of an idle proxy: a few warm ones for each of four backends. */
const restingConnections = 12;

say(`seed ${values.seed}`);
const random = seeded(Number(values.seed));
const stage = await Stage.start();
const beat = new Beat(beatInto(stage.store, wallClock), wallClock);
beat.start();
const elder = new Elder(
  () => new DemoClient({ port: stage.ports.kube, ca: stage.ca, fields: { authorization: "Bearer demo" } }),
  (how) =>
    say(`${minute()} the watch that stays ${how}; the proxy's last words:\n${stage.said.slice(-4000)}`),
);
elder.start();
const felt = newFelt();
const troubles = new Troubles(stage, random);
const began = performance.now();
const minute = (): string => `${((performance.now() - began) / 60_000).toFixed(1)} min`;
const rounds: Figures[] = [];
let base: Figures | undefined;
let missed: string[] = [];
try {
  while (performance.now() - began < lastsMs || rounds.length < 2) {
    const crowd = new Crowd({ ports: stage.ports, ca: stage.ca, felt, random });
    crowd.start();
    await troubles.until(performance.now() + Math.max(10_000, roundMs - 30_000));
    say(`${minute()} under load: ${line(await figuresOf(stage))}`);
    await crowd.leave();
    await stage.ready();
    const now = await calm(stage, base);
    say(`${minute()} at rest:    ${line(now)}`);
    rounds.push(now);
    if (base === undefined && performance.now() - began >= warmMs) base = now;
  }
  const end = rounds.at(-1);
  if (base === undefined || end === undefined) throw new Error("Too short to compare");
  missed = notBack(base, end);
} catch (error) {
  missed = [`${String(error)}\n${stage.said}`];
} finally {
  elder.stop();
  beat.stop();
  await stage.stop();
}
if (elder.wrong > 0) missed.push(`The client that stayed was told ${elder.wrong} wrong events`);
say(`figure: ${minute()} of load: ${told(felt.done)}`);
say(`figure: troubles: ${told(troubles.played)}`);
say(`figure: clients felt: ${told(felt.amiss)}`);
say(`figure: the watch that stayed: ${elder.said}`);
if (base !== undefined) say(`figure: at first: ${line(base)}`);
for (const end of rounds.slice(-1)) say(`figure: at last:  ${line(end)}`);
for (const miss of missed) say(`MISSED ${miss}`);
process.exit(missed.length === 0 ? 0 : 1);
