/**
 * `watchkeeper run --config FILE`: serves until a signal. The first SIGTERM or SIGINT drains the proxy, and the second
 * ends it at once. SIGHUP reloads the configuration. SIGUSR2 hands over to a successor (handover.ts).
 */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { parseAddress } from "../../../base/address.ts";
import { wallClock } from "../../../base/clock.ts";
import { parseDuration } from "../../../base/duration.ts";
import { Failure, failureFrom } from "../../../base/failure.ts";
import { readText } from "../../../base/read-text.ts";
import { guarded } from "../../../events/guarded-clock.ts";
import type { Journal } from "../../../events/journal.ts";
import { startWatchkeeper } from "../../../main.ts";
import { passedIn } from "../../../upstream/net/descriptors.ts";
import { isZone } from "../../config/cluster.ts";
import { type Config, workersOf } from "../../config/config.ts";
import { mostWorkers } from "../../config/limits.ts";
import { isProblems, lineOf, quote } from "../../config/problem.ts";
import { logLevels } from "../commands/commands.ts";
import { type Given, given, usage } from "../commands/options.ts";
import { complain, failed } from "../commands/screen.ts";
import { Handover, inheritedLimits, isSuccessor, tellPredecessor } from "./handover.ts";
import { Reloads } from "./reloads.ts";
import { beginServing, exitCode, exitSoon } from "./signals.ts";
import { ServiceState } from "./systemd.ts";
import { loadWhenComplete } from "./wait-for-files.ts";

export async function run(args: string[]): Promise<number> {
  const options = given("run", args);
  if (options instanceof Failure) return failed(options);
  const wishes = wishesOf(options);
  if (wishes instanceof Failure) return failed(wishes);
  const loaded = await loadWhenComplete(options.text("config") ?? "", wishes.waitMs);
  if (isProblems(loaded)) return complain(loaded.map(lineOf).join("\n"), 2);
  const config = wishes.adjust(loaded);
  // Signals and file changes are handled from here on, so that none of them is lost during the start.
  const { signals, parts } = beginServing({ out: process.stdout, ...config.logging });
  const { journal } = parts;
  const reloads = new Reloads(config.file, journal, wishes.adjust);
  const inherited = passedIn(process.env, process.pid);
  const clock = guarded(wallClock, journal, "handover");
  const handover = new Handover({ clock, journal, areSocketsKept: inherited.areKept });
  const running = await startWatchkeeper(config, {
    ...parts,
    inherited,
    isSuccessor: isSuccessor(),
    inheritedLimits: inheritedLimits(),
    readAgain: () => reloads.now(),
  });
  if (running instanceof Failure) {
    reloads.stop();
    return exitSoon(complain(running.message, 2));
  }
  reloads.apply(running);
  handover.apply(async () => {
    const thawReloads = await reloads.freeze();
    const limits = running.operatorLimits.freeze();
    const thaw = (): void => {
      thawReloads();
      running.operatorLimits.thaw();
    };
    return { descriptors: running.descriptors, limits, thaw };
  });
  if (isSuccessor()) tellPredecessor();
  const pidFile = options.text("pid-file");
  if (pidFile !== undefined) writePid(pidFile, journal);
  const service = new ServiceState(journal);
  service.ready();
  const isHandedOver = await Promise.race([signals.first, handover.done]);
  handover.stop();
  reloads.stop();
  service.stopping(isHandedOver);
  await running.stop(signals.hurry, isHandedOver);
  if (pidFile !== undefined) removePid(pidFile);
  return exitSoon(exitCode());
}

type Wishes = {
  /** Milliseconds to wait for files that do not exist yet. */
  readonly waitMs: number;
  /** Returns the loaded configuration after applying the command-line options to it. */
  readonly adjust: (config: Config) => Config;
};

function wishesOf(options: Given): Wishes | Failure {
  const wait = options.text("wait-for-files") ?? "0s";
  const waitMs = parseDuration(wait);
  if (waitMs === undefined)
    return usage(`--wait-for-files must be a duration such as 10m, not ${quote(wait)}`);
  const changes = [zoneIn(options), workersIn(options), logLevelIn(options), metricsAddressIn(options)];
  const failure = changes.find((change) => change instanceof Failure);
  if (failure !== undefined) return failure;
  const adjust = (config: Config): Config =>
    changes.reduce<Config>(
      (changed, change) => (change instanceof Failure ? changed : change(changed)),
      config,
    );
  return { waitMs, adjust };
}

/** Returns the configuration after applying one command-line option to it. */
type Change = (config: Config) => Config;

const noChange: Change = (config) => config;

function zoneIn(options: Given): Change | Failure {
  const zone = options.text("zone");
  if (zone === undefined) return noChange;
  if (!isZone(zone)) return usage(`--zone must be a zone such as eu-1a, not ${quote(zone)}`);
  return (config) => ({ ...config, zone });
}

function workersIn(options: Given): Change | Failure {
  const text = options.text("workers");
  if (text === undefined) return noChange;
  const workers = workersOf(text === "auto" ? text : Number(text));
  if (!Number.isInteger(workers) || workers < 1 || workers > mostWorkers)
    return usage(`--workers must be a whole number from 1 to ${mostWorkers}, or auto, not ${quote(text)}`);
  return (config) => ({ ...config, workers });
}

function logLevelIn(options: Given): Change {
  const level = logLevels.find((one) => one === options.text("log-level"));
  return level === undefined ? noChange : (config) => ({ ...config, logging: { ...config.logging, level } });
}

function metricsAddressIn(options: Given): Change | Failure {
  const address = options.text("metrics-address");
  if (address === undefined) return noChange;
  const metricsAddress = parseAddress(address);
  if (metricsAddress === undefined)
    return usage(`--metrics-address must be an address such as 127.0.0.1:7482, not ${quote(address)}`);
  return (config) => ({ ...config, admin: { ...config.admin, metricsAddress } });
}

/**
 * Writes the process id to a file, for example for systemd's PIDFile=. Replaces the file atomically, so that no reader
 * sees a partial file.
 */
function writePid(file: string, journal: Journal): void {
  try {
    // Removes what another user may have put there, such as a link to a file, which a write would follow.
    rmSync(`${file}.new`, { force: true });
    writeFileSync(`${file}.new`, `${process.pid}\n`, { flag: "wx" });
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

/** Removes the PID file, unless a successor has already written its own process id to it. */
function removePid(file: string): void {
  if (readText(file, 32) === `${process.pid}\n`) rmSync(file, { force: true });
}
