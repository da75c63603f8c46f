/** Takes changed configurations into use, one after the other; a bad one changes nothing but the log (D10). */
import { wallClock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import { type Config, loadConfig, watchConfig } from "../../config/config.ts";
import { isProblems, lineOf, type Problem } from "../../config/problem.ts";
import type { Journal } from "../../events/journal.ts";
import type { Running } from "../../main.ts";
import type { Reread } from "../../proxy/cluster/operations.ts";

/** Listens from its making on, for changes of `file` and for SIGHUP. */
export class Reloads {
  readonly #file: string;
  readonly #journal: Journal;
  readonly #stopWatching: () => void;
  #running: Running | undefined;
  #last: Promise<void> = Promise.resolve();
  /** How it ended last. */
  #reread: Reread = { problems: [], waiting: [] };
  readonly #hangUp = (): void => this.#take(loadConfig(this.#file));
  /** Came before there was anything to reload. */
  #early: Config | readonly Problem[] | undefined;

  constructor(file: string, journal: Journal) {
    this.#file = file;
    this.#journal = journal;
    this.#stopWatching = watchConfig(file, { clock: wallClock, onChange: (loaded) => this.#take(loaded) });
    process.on("SIGHUP", this.#hangUp);
  }

  /** Reads the file now; resolves when that has ended. */
  async now(): Promise<Reread> {
    this.#take(loadConfig(this.#file));
    await this.#last;
    return this.#reread;
  }

  apply(running: Running): void {
    this.#running = running;
    if (this.#early !== undefined) this.#take(this.#early);
  }

  /** Resolves when no reload is under way; none begins before the returned function was called. */
  async freeze(): Promise<() => void> {
    const thawed = Promise.withResolvers<undefined>();
    const before = this.#last;
    this.#last = before.then(() => thawed.promise);
    await before;
    return () => thawed.resolve(undefined);
  }

  stop(): void {
    this.#stopWatching();
    process.off("SIGHUP", this.#hangUp);
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
    const waiting = problems.length > 0 || outcome instanceof Failure ? [] : outcome;
    this.#reread = { problems, waiting };
    if (problems.length > 0) this.#journal.write({ kind: "config.refused", file, problems });
    else this.#journal.write({ kind: "config.reloaded", file, waiting });
  }
}

function configIn(loaded: Config | readonly Problem[]): Config | undefined {
  return isProblems(loaded) ? undefined : loaded;
}
