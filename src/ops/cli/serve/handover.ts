/**
 * Restarts the proxy without an interruption for clients. On SIGUSR2, the process starts a successor, which inherits
 * the listening sockets. Once the successor serves, the process drains. If the successor does not start, the process
 * continues to serve.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Clock } from "../../../base/clock.ts";
import { Failure } from "../../../base/failure.ts";
import type { Journal } from "../../../events/journal.ts";
import { passedOn } from "../../../upstream/net/descriptors.ts";

const envMark = "WATCHKEEPER_SUCCESSOR";

const readyMessage = "watchkeeper.ready";

/** Milliseconds within which a successor must serve after its start. On a slow machine, the start takes 1 s. */
const successorMs = 30_000;

export function isSuccessor(environment = process.env): boolean {
  return environment[envMark] !== undefined;
}

/** Informs the predecessor that this process serves. Afterwards, `isSuccessor` returns false. */
export function tellPredecessor(): void {
  Reflect.deleteProperty(process.env, envMark);
  // Sending fails if the predecessor has exited. That does not matter, because this process serves in any case.
  if (process.connected) process.send?.(readyMessage, () => process.connected && process.disconnect());
}

export type HandoverParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** True if systemd keeps the sockets open after this process has ended; default: false. */
  readonly areSocketsKept?: boolean;
  /** Program and arguments of the successor; default: those of this process. */
  readonly command?: readonly string[];
};

const limitsVariable = "WATCHKEEPER_LIMITS";

/**
 * Returns the limits that operators had set in the predecessor process; "": there is no predecessor. Reads the limits
 * from an environment variable, and then removes the variable.
 */
export function inheritedLimits(environment = process.env): string {
  const limits = environment[limitsVariable] ?? "";
  Reflect.deleteProperty(environment, limitsVariable);
  return limits;
}

/**
 * Waits for a running reload. Then blocks further reloads, and changes of the limits that operators set. Resolves with
 * the listening sockets, these limits, and a function that ends the block.
 */
export type Freeze = () => Promise<{
  readonly limits: string;
  readonly descriptors: ReadonlyMap<string, number>;
  readonly thaw: () => void;
}>;

export class Handover {
  readonly #parts: HandoverParts;
  readonly #done = Promise.withResolvers<true>();
  #child: ChildProcess | undefined;
  #isTrying = false;
  #freeze: Freeze | undefined;
  readonly #onSignal = (): void => void this.begin();

  /** Handles SIGUSR2 from now on, because the signal's default action would end the process. */
  constructor(parts: HandoverParts) {
    this.#parts = parts;
    process.on("SIGUSR2", this.#onSignal);
  }

  /** Makes SIGUSR2 start a successor. Before this call, the signal has no effect. */
  apply(freeze: Freeze): void {
    this.#freeze = freeze;
  }

  /** Resolves once a successor serves. Stays pending if none ever does. */
  get done(): Promise<true> {
    return this.#done.promise;
  }

  /** Starts a successor, unless one is being started already. */
  async begin(): Promise<void> {
    if (this.#isTrying || this.#freeze === undefined) return;
    this.#isTrying = true;
    const { descriptors, limits, thaw } = await this.#freeze();
    const outcome = await this.#start(descriptors, limits);
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

  /** Kills a successor that is not ready yet. Called when an operator stops the service. */
  stop(): void {
    this.#freeze = undefined;
    this.#child?.kill("SIGKILL");
  }

  /** Starts a successor process. Resolves with its process id once it serves, or with a Failure. */
  #start(descriptors: ReadonlyMap<string, number>, limits: string): Promise<number | Failure> {
    // Process 1 cannot hand over, because its exit would end its container and thus the successor.
    if (process.pid === 1)
      return Promise.resolve(failed("Process 1 cannot hand over: start watchkeeper below another process"));
    if (descriptors.size === 0) return Promise.resolve(failed("There is no listening socket to hand over"));
    const child = this.#spawn(descriptors, limits);
    this.#child = child;
    return new Promise((resolve) => {
      const settle = (outcome: number | Failure): void => {
        stopTimer();
        child.removeAllListeners();
        child.on("error", () => {});
        if (outcome instanceof Failure) child.kill("SIGKILL");
        this.#child = undefined;
        // Without `disconnect` and `unref`, the child would keep this process running until the child itself exits.
        if (child.connected) child.disconnect();
        child.unref();
        resolve(outcome);
      };
      const stopTimer = this.#parts.clock.after(successorMs, () =>
        settle(failed(`The successor did not serve in ${successorMs} ms`)),
      );
      child.on("error", (error) => settle(failed(`Cannot start a successor: ${error.message}`)));
      child.on("exit", (code, signal) =>
        settle(failed(`The successor ended with ${signal ?? String(code)}`)),
      );
      child.on("message", (word) => {
        if (word === readyMessage) settle(child.pid ?? 0);
      });
    });
  }

  #spawn(descriptors: ReadonlyMap<string, number>, limits: string): ChildProcess {
    const own = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
    const [program = "", ...args] = this.#parts.command ?? own;
    const child = spawn(program, args, {
      // The IPC channel comes last, because the successor expects the sockets at descriptors 3, 4, ….
      stdio: ["ignore", "inherit", "inherit", ...descriptors.values(), "ipc"],
      env: {
        ...process.env,
        ...passedOn(Array.from(descriptors.keys()), this.#parts.areSocketsKept === true),
        [envMark]: String(process.pid),
        [limitsVariable]: limits,
      },
    });
    if (child.pid !== undefined) this.#parts.journal.write({ kind: "successor.started", pid: child.pid });
    return child;
  }
}

function failed(what: string): Failure {
  return new Failure("bad-request", "proxy", what);
}
