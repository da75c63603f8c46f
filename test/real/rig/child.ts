/** A program that runs with its output in a log file and is killed at the end of the test run. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { within } from "../../support/within.ts";
import { onLeave } from "./leave.ts";

export type Start = {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly logFile: string;
  readonly namespace?: string;
  readonly env?: NodeJS.ProcessEnv;
};

export class Child {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  readonly #process: ChildProcess;
  /** Resolves with the exit code or the name of the signal. */
  readonly ended: Promise<number | string>;
  #outcome: number | string | undefined;
  readonly #leave: () => void;

  constructor(start: Start) {
    this.name = start.name;
    this.logFile = start.logFile;
    const log = openSync(start.logFile, "a");
    const [command = "", ...args] = commandLine(start);
    this.#process = spawn(command, args, { stdio: ["ignore", log, log], env: start.env ?? process.env });
    closeSync(log);
    this.pid = this.#process.pid ?? -1;
    const { promise, resolve } = Promise.withResolvers<number | string>();
    this.ended = promise;
    const conclude = (outcome: number | string): void => {
      this.#outcome ??= outcome;
      resolve(outcome);
    };
    this.#process.on("error", (error) => conclude(error.message));
    this.#process.on("exit", (code, signal) => conclude(signal ?? code ?? -1));
    this.#leave = onLeave(() => this.#process.kill("SIGKILL"));
  }

  get isRunning(): boolean {
    return this.#outcome === undefined;
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /**
   * Sends SIGTERM, waits `graceMs`, then sends SIGKILL. SIGCONT comes first, because a stopped process would not handle
   * SIGTERM.
   */
  async stop(graceMs = 5_000): Promise<void> {
    this.signal("SIGCONT");
    this.signal("SIGTERM");
    await within(graceMs, `${this.name} to end`, this.ended).catch(() => this.signal("SIGKILL"));
    await within(5_000, `${this.name} to be killed`, this.ended);
    this.#leave();
  }

  /** Returns the last lines of the program's log, for error messages. */
  tail(lines = 25): string {
    if (!existsSync(this.logFile)) return "";
    return readFileSync(this.logFile, "utf8").trimEnd().split("\n").slice(-lines).join("\n");
  }

  /**
   * Calls `isReady` every 100 ms until it resolves with true. Rejects at once if the program exits, otherwise after
   * `ms`. The error contains the end of the program's log.
   */
  async ready(ms: number, isReady: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + ms;
    for (;;) {
      if (!this.isRunning) throw new Error(`${this.name} ended (${String(this.#outcome)}):\n${this.tail()}`);
      if (await isReady().catch(() => false)) return;
      if (Date.now() > deadline) throw new Error(`${this.name} not ready after ${ms} ms:\n${this.tail()}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/**
 * Returns the command line. setpriv makes the kernel kill the program when this process dies for any reason. Each
 * command in the chain replaces itself by the next one, so the pid is the program's own. In a network namespace, the
 * program also gets a host name of its own. An apiserver names its identity Lease after its host name, and two
 * apiservers with one host name would share a Lease and overwrite each other's address.
 */
function commandLine({ name, command, args, namespace }: Start): string[] {
  const named = ["unshare", "--uts", "sh", "-c", 'echo "$0" > /proc/sys/kernel/hostname && exec "$@"', name];
  const inside = namespace === undefined ? [] : ["ip", "netns", "exec", namespace, ...named];
  return ["setpriv", "--pdeathsig", "KILL", ...inside, command, ...args];
}
