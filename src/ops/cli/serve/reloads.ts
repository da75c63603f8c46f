/** Applies changed configurations, one after another. An invalid configuration is logged and changes nothing (D10). */
import { wallClock } from "../../../base/clock.ts";
import { Failure, failureFrom } from "../../../base/failure.ts";
import { guarded } from "../../../events/guarded-clock.ts";
import type { Journal } from "../../../events/journal.ts";
import type { Running } from "../../../main.ts";
import type { ReloadOutcome } from "../../../proxy/cluster/operations.ts";
import { type Config, loadConfig, watchConfig } from "../../config/config.ts";
import { isProblems, lineOf, type Problem } from "../../config/problem.ts";

/** Watches the configuration file and handles SIGHUP from the construction until `stop`. */
export class Reloads {
  readonly #file: string;
  readonly #journal: Journal;
  readonly #adjust: (config: Config) => Config;
  readonly #stopWatching: () => void;
  #running: Running | undefined;
  #last: Promise<void> = Promise.resolve();
  #reread: ReloadOutcome = { problems: [], waiting: [] };
  readonly #hangUp = (): void => this.#take(loadConfig(this.#file));
  /**
   * The latest result of loading the file while the proxy was still starting; undefined: none. `apply` uses it later.
   */
  #early: Config | readonly Problem[] | undefined;

  /** Begins to watch the file. `adjust` is applied to each valid configuration before it takes effect. */
  constructor(file: string, journal: Journal, adjust: (config: Config) => Config = (config) => config) {
    this.#file = file;
    this.#journal = journal;
    this.#adjust = adjust;
    const clock = guarded(wallClock, journal, "configuration");
    this.#stopWatching = watchConfig(file, { clock, onChange: (loaded) => this.#take(loaded) });
    process.on("SIGHUP", this.#hangUp);
  }

  /** Reads the file now. Resolves with the outcome once the configuration has been applied or rejected. */
  async now(): Promise<ReloadOutcome> {
    this.#take(loadConfig(this.#file));
    await this.#last;
    return this.#reread;
  }

  apply(running: Running): void {
    this.#running = running;
    if (this.#early !== undefined) this.#take(this.#early);
  }

  /** Waits for the running reload. No further reload begins until the returned function is called. */
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
    // Reloads run one after another, because each opens and closes listeners.
    this.#last = this.#last
      .then(async () => this.#report(loaded, await running.reload(this.#configIn(loaded))))
      // An exception here is a bug in watchkeeper. It makes only this reload fail.
      .catch((reason: unknown) => this.#report(loaded, failureFrom(reason, "proxy")));
  }

  #report(loaded: Config | readonly Problem[], outcome: readonly string[] | Failure): void {
    const file = this.#file;
    const failures = outcome instanceof Failure ? [outcome.message] : [];
    const problems = isProblems(loaded) ? loaded.map(lineOf) : failures;
    const waiting = problems.length > 0 || outcome instanceof Failure ? [] : outcome;
    this.#reread = { problems, waiting };
    if (isProblems(loaded) || problems.length > 0)
      this.#journal.write({ kind: "config.refused", file, problems });
    else this.#journal.write({ kind: "config.reloaded", file, sha256: loaded.sha256, waiting });
  }

  #configIn(loaded: Config | readonly Problem[]): Config | undefined {
    return isProblems(loaded) ? undefined : this.#adjust(loaded);
  }
}
