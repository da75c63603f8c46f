/**
 * A restart that no client notices: SIGUSR2 starts a successor, the same command once more, which is given the
 * listening sockets. When it says that it serves, this process drains; when it does not come up, a bad configuration
 * say, this one serves on.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";
import { passedOn } from "../../proxy/net/descriptors.ts";

/** In a successor's environment. */
const mark = "WATCHKEEPER_SUCCESSOR";

/** What a successor says once it accepts. */
const readyWord = "watchkeeper.ready";

export function isSuccessor(environment = process.env): boolean {
  return environment[mark] !== undefined;
}

/** Tells the one before us that we serve; from now on we are nobody's successor. */
export function tellPredecessor(): void {
  Reflect.deleteProperty(process.env, mark);
  // It may be gone by now; that is no reason not to serve.
  if (process.connected) process.send?.(readyWord, () => process.connected && process.disconnect());
}

export type HandoverParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** The command that is started; left out, our own. */
  readonly command?: readonly string[];
};

/** The sockets to hand over, once no reload is changing them; and how to let reloads go on. */
export type Freeze = () => Promise<{
  readonly descriptors: ReadonlyMap<string, number>;
  readonly thaw: () => void;
}>;

export class Handover {
  readonly #parts: HandoverParts;
  readonly #done = Promise.withResolvers<true>();
  #child: ChildProcess | undefined;
  #isTrying = false;
  #freeze: Freeze | undefined;
  readonly #heard = (): void => void this.begin();

  /** Hears SIGUSR2 from its making on: by default it would end the process. */
  constructor(parts: HandoverParts) {
    this.#parts = parts;
    process.on("SIGUSR2", this.#heard);
  }

  /** From now on there is something to hand over. */
  apply(freeze: Freeze): void {
    this.#freeze = freeze;
  }

  /** Resolves when a successor serves. */
  get done(): Promise<true> {
    return this.#done.promise;
  }

  /** Starts a successor, unless one is on its way. */
  async begin(): Promise<void> {
    if (this.#isTrying || this.#freeze === undefined) return;
    this.#isTrying = true;
    const { descriptors, thaw } = await this.#freeze();
    const outcome = await this.#start(descriptors);
    const { journal } = this.#parts;
    if (outcome instanceof Failure) {
      this.#isTrying = false;
      thaw();
      journal.write({ kind: "successor.failed", reason: outcome.message });
    } else {
      journal.write({ kind: "successor.ready", pid: outcome });
      this.#done.resolve(true);
    }
  }

  /** A successor that is not ready yet is not wanted any more: all of us are to stop. */
  stop(): void {
    this.#freeze = undefined;
    this.#child?.kill("SIGKILL");
  }

  /** Its process id, once it serves. */
  #start(descriptors: ReadonlyMap<string, number>): Promise<number | Failure> {
    // The kernel ends a container, or a whole machine, with its first process.
    if (process.pid === 1)
      return Promise.resolve(failed("Process 1 cannot be succeeded: start it under another"));
    if (descriptors.size === 0) return Promise.resolve(failed("There is no listening socket to hand over"));
    const child = this.#spawn(descriptors);
    this.#child = child;
    return new Promise((resolve) => {
      const settle = (outcome: number | Failure): void => {
        stopTimer();
        child.removeAllListeners();
        child.on("error", () => {});
        if (outcome instanceof Failure) child.kill("SIGKILL");
        this.#child = undefined;
        // It outlives us: neither its channel nor its end is any of our business now.
        if (child.connected) child.disconnect();
        child.unref();
        resolve(outcome);
      };
      const stopTimer = this.#parts.clock.after(limits.successorMs, () =>
        settle(failed(`The successor did not serve in ${limits.successorMs} ms`)),
      );
      child.on("error", (error) => settle(failed(`Cannot start a successor: ${error.message}`)));
      child.on("exit", (code, signal) =>
        settle(failed(`The successor ended with ${signal ?? String(code)}`)),
      );
      child.on("message", (word) => {
        if (word === readyWord) settle(child.pid ?? 0);
      });
    });
  }

  #spawn(descriptors: ReadonlyMap<string, number>): ChildProcess {
    const own = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
    const [program = "", ...args] = this.#parts.command ?? own;
    const child = spawn(program, args, {
      // Its log goes where ours goes. The channel comes last, since the sockets' places are fixed.
      stdio: ["ignore", "inherit", "inherit", ...descriptors.values(), "ipc"],
      env: { ...process.env, ...passedOn(Array.from(descriptors.keys())), [mark]: String(process.pid) },
    });
    if (child.pid !== undefined) this.#parts.journal.write({ kind: "successor.started", pid: child.pid });
    return child;
  }
}

function failed(what: string): Failure {
  return new Failure("bad-request", "proxy", what);
}
