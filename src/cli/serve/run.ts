/**
 * `watchkeeper run --config FILE [--pid-file FILE]`: serves until a signal. SIGTERM or SIGINT drains, a second one ends
 * the process now; SIGHUP reloads; SIGUSR2 hands over to a successor (handover.ts).
 */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { Log } from "../../admin/events/log.ts";
import { wallClock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import { readText } from "../../base/read-text.ts";
import { loadConfig } from "../../config/config.ts";
import { isProblems, lineOf } from "../../config/problem.ts";
import { Journal } from "../../events/journal.ts";
import { startWatchkeeper } from "../../main.ts";
import { passedIn } from "../../proxy/net/descriptors.ts";
import { Handover, isSuccessor, tellPredecessor } from "./handover.ts";
import { Reloads } from "./reloads.ts";
import { containFaults, exitCode, exitSoon, listenForSignals } from "./signals.ts";

export async function run(args: string[]): Promise<number> {
  const options = { config: { type: "string", short: "c" }, "pid-file": { type: "string" } } as const;
  const { config: file, "pid-file": pidFile } = parseArgs({ args, options }).values;
  if (file === undefined) return complain("Cannot run without a configuration: --config FILE\n");
  const config = loadConfig(file);
  if (isProblems(config)) return complain(`${config.map(lineOf).join("\n")}\n`);
  const journal = new Journal(wallClock);
  const log = new Log(journal, { out: process.stdout, clock: wallClock, ...config.logging });
  // Installed before the start, so that no signal or file change is lost meanwhile.
  const signals = listenForSignals();
  const reloads = new Reloads(config.file, journal);
  const handover = new Handover({ clock: wallClock, journal });
  containFaults(journal, signals.raise);
  const running = await startWatchkeeper(config, {
    journal,
    droppedLogLines: () => log.dropped,
    inherited: passedIn(process.env, process.pid),
    isSuccessor: isSuccessor(),
    readAgain: () => reloads.now(),
  });
  if (running instanceof Failure) {
    reloads.stop();
    exitSoon(2);
    return complain(`${running.message}\n`);
  }
  reloads.apply(running);
  handover.apply(async () => {
    const thaw = await reloads.freeze();
    return { descriptors: running.descriptors, thaw };
  });
  if (isSuccessor()) tellPredecessor();
  if (pidFile !== undefined) writePid(pidFile, journal);
  const isHandedOver = await Promise.race([signals.first, handover.done]);
  handover.stop();
  reloads.stop();
  await running.stop(signals.hurry, isHandedOver);
  if (pidFile !== undefined) removePid(pidFile);
  exitSoon(exitCode());
  return exitCode();
}

/**
 * Writes the id of the serving process, for systemd's PIDFile= for example; each successor overwrites it. The file is
 * replaced atomically, so that no reader sees a partial number.
 */
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

/** Removes the file only while it contains this process's id. */
function removePid(file: string): void {
  if (readText(file, 32) === `${process.pid}\n`) rmSync(file, { force: true });
}

function complain(text: string): number {
  process.stderr.write(text);
  return 2;
}
