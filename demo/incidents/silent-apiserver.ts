/** Incident 004: an apiserver stops answering without closing connections, and watches hang on it for days. */
import type { Seen } from "../story/steady-client.ts";
import { brokenOf, type Comparison, inSeconds, type Outcome, whenReported } from "./outcome.ts";
import type { Scene } from "./scene.ts";
import type { Wishes } from "./setting.ts";

const warmMs = 1_000;
const holeMs = 20_000;
const lateEventMs = 2_000;

export const wishes: Wishes = {};

export async function play(scene: Scene): Promise<Outcome> {
  scene.beat.start();
  scene.atEnd(() => scene.beat.stop());
  const clients = { ours: scene.steady("watchkeeper"), theirs: scene.steady("naive proxy") };
  await Promise.all([clients.ours.start(), clients.theirs.start()]);
  await scene.pause(warmMs);
  for (const client of Object.values(clients)) client.reset();
  const victim = await scene.busiest();
  scene.begin();
  scene.report(victim, "falls into a black hole: nothing gets through, either way");
  await scene.setting.silence(victim);
  const reported = await scene.found(scene.setting.silentKind);
  await scene.pause(holeMs - scene.ms);
  const { ours, theirs } = { ours: clients.ours.seen(), theirs: clients.theirs.seen() };
  const stuck = `${theirs.hung} of ${theirs.watches} watches still hang, and nothing will end them`;
  if (theirs.hung > 0) scene.report("naive proxy", stuck);
  const check = scene.naiveWords > 0 ? "that a check fails" : "nothing";
  const telling = {
    what: "the operator is told",
    without: check,
    with: `${whenReported(reported)}, with the proof`,
  };
  return {
    rows: [...compared(theirs, ours), telling],
    broken: brokenOf({
      "a GET failed": ours.failedGets === 0,
      "an event was late": ours.latestEventMs < lateEventMs,
      "a watch ended": ours.relists + ours.ends === 0,
      "an event was skipped or told twice": ours.wrongEvents === 0,
      "the operator was not told": reported !== undefined,
    }),
  };
}

function compared(theirs: Seen, ours: Seen): Comparison[] {
  const row = (what: string, pick: (seen: Seen) => string): Comparison => ({
    what,
    without: pick(theirs),
    with: pick(ours),
  });
  return [
    row("GETs that failed", ({ failedGets, gets }) => `${failedGets} of ${gets}`),
    row("slowest GET", ({ slowestGetMs }) => inSeconds(slowestGetMs)),
    row("watches that hung", ({ hung, watches }) => `${hung} of ${watches}`),
    row("latest event", ({ latestEventMs }) => `${inSeconds(latestEventMs)} late`),
    row("watches that broke off and listed again", ({ relists }) => String(relists)),
    row("events skipped or told twice", ({ wrongEvents }) => String(wrongEvents)),
  ];
}
