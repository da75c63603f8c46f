/** `watchkeeper run --config FILE`: serves until a signal. SIGTERM and SIGINT drain, a second one ends now. */
import { parseArgs } from "node:util";
import { Log } from "../admin/log.ts";
import { wallClock } from "../clock.ts";
import { type Config, loadConfig, watchConfig } from "../config.ts";
import { Failure, failureFrom } from "../failure.ts";
import { Journal } from "../journal.ts";
import { type Running, startWatchkeeper } from "../main.ts";
import { isProblems, lineOf, type Problem } from "../problem.ts";

export async function run(args: string[]): Promise<number> {
  const { config: file } = parseArgs({ args, options: { config: { type: "string", short: "c" } } }).values;
  if (file === undefined) return complain("Cannot run without a configuration: --config FILE\n");
  const config = loadConfig(file);
  if (isProblems(config)) return complain(`${config.map(lineOf).join("\n")}\n`);
  const journal = new Journal(wallClock);
  const log = new Log(journal, { out: process.stdout, clock: wallClock, ...config.logging });
  // Both from before the start on: a signal or a change that comes during it is not lost.
  const signals = listenForSignals();
  const reloads = new Reloads(config.file, journal);
  containFaults(journal, signals.raise);
  const running = await startWatchkeeper(config, { journal, droppedLogLines: () => log.dropped });
  if (running instanceof Failure) {
    reloads.stop();
    exitSoon(2);
    return complain(`${running.message}\n`);
  }
  reloads.apply(running);
  await signals.first;
  reloads.stop();
  await running.stop(signals.hurry);
  const code = process.exitCode === 1 ? 1 : 0;
  exitSoon(code);
  return code;
}

/**
 * The outermost ring (D10): a fault that no stream and no session caught leaves the process in a state that nobody
 * knows. It is journaled, new clients are sent elsewhere, and what is under way is let finish.
 */
function containFaults(journal: Journal, drain: () => void): void {
  const contain = (reason: unknown): void => {
    journal.write({
      kind: "fault.contained",
      ring: "process",
      message: failureFrom(reason, "proxy").message,
    });
    process.exitCode = 1;
    drain();
  };
  process.on("uncaughtException", contain);
  process.on("unhandledRejection", contain);
}

/** What still holds the loop has been cut, but lines of the log may be under way in a pipe. */
function exitSoon(code: number): void {
  wallClock.after(100, () => process.exit(code));
}

function complain(text: string): number {
  process.stderr.write(text);
  return 2;
}

/** A bad file changes nothing but the log; the last good one serves on (D10). */
class Reloads {
  readonly #file: string;
  readonly #journal: Journal;
  readonly #stopWatching: () => void;
  #running: Running | undefined;
  #last: Promise<void> = Promise.resolve();
  /** Came before there was anything to reload. */
  #early: Config | readonly Problem[] | undefined;

  constructor(file: string, journal: Journal) {
    this.#file = file;
    this.#journal = journal;
    this.#stopWatching = watchConfig(file, { clock: wallClock, onChange: (loaded) => this.#take(loaded) });
    process.on("SIGHUP", () => this.#take(loadConfig(file)));
  }

  apply(running: Running): void {
    this.#running = running;
    if (this.#early !== undefined) this.#take(this.#early);
  }

  stop(): void {
    this.#stopWatching();
  }

  #take(loaded: Config | readonly Problem[]): void {
    if (this.#running === undefined) {
      this.#early = loaded;
      return;
    }
    const running = this.#running;
    // One after the other: a reload opens and closes listeners.
    this.#last = this.#last
      .then(async () => this.#tell(loaded, await running.reload(configIn(loaded))))
      // What a file makes us throw is our fault, and still only that file's refusal.
      .catch((reason: unknown) => this.#tell(loaded, failureFrom(reason, "proxy")));
  }

  #tell(loaded: Config | readonly Problem[], outcome: readonly string[] | Failure): void {
    const file = this.#file;
    const failures = outcome instanceof Failure ? [outcome.message] : [];
    const problems = isProblems(loaded) ? loaded.map(lineOf) : failures;
    if (problems.length > 0) this.#journal.write({ kind: "config.refused", file, problems });
    else if (!(outcome instanceof Failure))
      this.#journal.write({ kind: "config.reloaded", file, waiting: outcome });
  }
}

function configIn(loaded: Config | readonly Problem[]): Config | undefined {
  return isProblems(loaded) ? undefined : loaded;
}

type Signals = {
  /** Resolves with the first signal. */
  readonly first: Promise<void>;
  /** Aborts with the second. */
  readonly hurry: AbortSignal;
  /** Does what a first signal does; a second call changes nothing. */
  readonly raise: () => void;
};

function listenForSignals(): Signals {
  const hurry = new AbortController();
  const first = Promise.withResolvers<undefined>();
  let count = 0;
  const heard = (): void => {
    count += 1;
    if (count > 1) hurry.abort();
    first.resolve(undefined);
  };
  process.on("SIGTERM", heard);
  process.on("SIGINT", heard);
  return { first: first.promise, hurry: hurry.signal, raise: () => first.resolve(undefined) };
}
