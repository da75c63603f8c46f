/**
 * `watchkeeper incident NUMBER`: replays one of the five incidents with watchkeeper and with a naive proxy, and prints
 * what happens. The command uses embedded apiservers and real sockets, so it needs neither a cluster nor root.
 */

import { embeddedSettings } from "../../../../demo/incidents/embedded-setting.ts";
import { type IncidentNumber, incidents, isIncidentNumber } from "../../../../demo/incidents/incidents.ts";
import { inSeconds, type Outcome, tableOf } from "../../../../demo/incidents/outcome.ts";
import { Scene } from "../../../../demo/incidents/scene.ts";
import type { Settings } from "../../../../demo/incidents/setting.ts";
import { Failure } from "../../../base/failure.ts";
import { alertOf } from "../../incidents/kinds.ts";
import { docsPage, runbookPage } from "../../program/docs.ts";
import { given } from "../commands/options.ts";
import { complain } from "../commands/screen.ts";

/**
 * If the command's event loop is ever delayed by more than this many ms, the command prints that the machine is too
 * slow for the measurement. The value is half of the time after which a backend without a response becomes suspect.
 */
const tellsLateMs = 250;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/**
 * Replays the incident. `settings`: which apiservers to use. Exit codes: 0 watchkeeper met all expectations, 1 it
 * failed one or the incident could not be replayed, 2 usage error.
 */
export async function incident(args: string[], settings: Settings = embeddedSettings): Promise<number> {
  const options = given("incident", args);
  const [number = ""] = options instanceof Failure ? [] : options.words;
  if (options instanceof Failure || !isIncidentNumber(number)) {
    const list = Object.entries(incidents).map(([name, { title }]) => `\n  ${name}  ${title}`);
    return complain(`${options instanceof Failure ? options.message : ""}\n${list.join("")}`, 2);
  }
  const interrupted = new Promise<Failure>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const)
      process.once(signal, () => resolve(new Failure("draining", "client", "It was interrupted")));
  });
  introduce(number, settings);
  const { wishes, play } = await incidents[number].load();
  const scene = await Scene.start(wishes, say, settings);
  if (scene instanceof Failure) return failed(scene);
  const outcome = await Promise.race([play(scene), interrupted]);
  const lateMs = await scene.latenessMs();
  await scene.stop();
  if (outcome instanceof Failure) return failed(outcome);
  const code = conclude(number, outcome);
  if (lateMs > tellsLateMs)
    say(`  the machine    was busy: it delayed this run by up to ${inSeconds(lateMs)}`);
  return code;
}

function failed({ message }: Failure): number {
  return complain(`The incident could not be played: ${message}`, 1);
}

function introduce(number: IncidentNumber, { about }: Settings): void {
  const { title, before } = incidents[number];
  say(`Incident ${number}: ${title}\n`);
  for (const line of before) say(`  ${line}`);
  say(`\nNow here, through watchkeeper and through a naive proxy in front of the same ${about}:\n`);
}

function conclude(number: IncidentNumber, outcome: Outcome): number {
  const { kind } = incidents[number];
  say("");
  for (const line of tableOf(outcome)) say(line);
  const alert = alertOf(kind);
  say(`\n  the alert      ${alert === undefined ? "none" : `${alert} (${runbookPage(alert)})`}`);
  say(`  the whole page ${docsPage(`incidents/${number}.md`)}`);
  for (const claim of outcome.broken) process.stderr.write(`Failed expectation: ${claim}\n`);
  return outcome.broken.length === 0 ? 0 : 1;
}
