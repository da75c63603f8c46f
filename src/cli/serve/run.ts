/**
 * `watchkeeper run --config FILE [--pid-file FILE]`: serves until a signal. SIGTERM or SIGINT drains, and a second one
 * exits at once; SIGHUP reloads; SIGUSR2 hands over to a successor (handover.ts).
 */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { wallClock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import { readText } from "../../base/read-text.ts";
import { loadConfig } from "../../config/config.ts";
import { isProblems, lineOf } from "../../config/problem.ts";
import type { Journal } from "../../events/journal.ts";
import { startWatchkeeper } from "../../main.ts";
import { passedIn } from "../../proxy/net/descriptors.ts";
import { given } from "../commands/options.ts";
import { complain, failed } from "../commands/screen.ts";
import { Handover, isSuccessor, tellPredecessor } from "./handover.ts";
import { Reloads } from "./reloads.ts";
import { beginServing, exitCode, exitSoon } from "./signals.ts";

export async function run(args: string[]): Promise<number> {
  const options = given("run", args);
  if (options instanceof Failure) return failed(options);
  const config = loadConfig(options.text("config") ?? "");
  if (isProblems(config)) return complain(config.map(lineOf).join("\n"), 2);
  // Signals and file changes are handled from here on, so that none is lost during the start.
  const { signals, parts } = beginServing({ out: process.stdout, ...config.logging });
  const { journal } = parts;
  const reloads = new Reloads(config.file, journal);
  const handover = new Handover({ clock: wallClock, journal });
  const running = await startWatchkeeper(config, {
    ...parts,
    inherited: passedIn(process.env, process.pid),
    isSuccessor: isSuccessor(),
    readAgain: () => reloads.now(),
  });
  if (running instanceof Failure) {
    reloads.stop();
    return exitSoon(complain(running.message, 2));
  }
  reloads.apply(running);
  handover.apply(async () => {
    const thaw = await reloads.freeze();
    return { descriptors: running.descriptors, thaw };
  });
  if (isSuccessor()) tellPredecessor();
  const pidFile = options.text("pid-file");
  if (pidFile !== undefined) writePid(pidFile, journal);
  const isHandedOver = await Promise.race([signals.first, handover.done]);
  handover.stop();
  reloads.stop();
  await running.stop(signals.hurry, isHandedOver);
  if (pidFile !== undefined) removePid(pidFile);
  return exitSoon(exitCode());
}

/** Writes the process id, as for systemd's PIDFile=. Replaces the file atomically: no reader gets half of it. */
function writePid(file: string, journal: Journal): void {
  try {
    writeFileSync(`${file}.new`, `${process.pid}\n`);
    renameSync(`${file}.new`, file);
  } catch (reason) {
    const { message } = failureFrom(reason, "proxy");
    journal.write({
      kind: "internal.error",
      scope: "session",
      message: `Cannot write the pid file: ${message}`,
    });
  }
}

/** Removes the file, unless a successor has overwritten it. */
function removePid(file: string): void {
  if (readText(file, 32) === `${process.pid}\n`) rmSync(file, { force: true });
}
