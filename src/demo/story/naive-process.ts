/** Runs the naive proxy's process and restarts it when it ends, as a supervisor or a kubelet does. */
import { type ChildProcess, fork } from "node:child_process";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { Pair } from "../../pki/pki.ts";
import type { DemoBackend } from "./files.ts";

/** A served host and the files of its key pair. */
export type NaiveHost = { readonly name: string; readonly certFile: string; readonly keyFile: string };

export type NaiveOrder = {
  readonly backends: readonly DemoBackend[];
  readonly ca: string;
  readonly pair: Pair;
  readonly hosts: readonly NaiveHost[];
  readonly port: number;
};

export type NaiveWord =
  | { readonly kind: "serving"; readonly port: number }
  | { readonly kind: "failed"; readonly message: string };

const restartMs = 1_000;
/** Characters kept of the end of its stderr. */
const saidMost = 4_096;

/** Next to this file, with the same extension: .ts in the repository, .js as published. */
const childFile = import.meta.filename.replace("naive-process", "naive-child");

export class NaiveProcess {
  readonly #order: Omit<NaiveOrder, "port">;
  readonly #clock: Clock;
  readonly #onEnd: (why: string) => void;
  #child: ChildProcess | undefined;
  #cancel = (): void => {};
  #port = 0;
  #isStopped = false;
  /** Number of times it has ended by itself. */
  ends = 0;

  constructor(order: Omit<NaiveOrder, "port">, clock: Clock, onEnd: (why: string) => void) {
    this.#order = order;
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  /** Returns the loopback port, which stays the same over restarts. */
  start(): Promise<number | Failure> {
    const child = fork(childFile, [], {
      serialization: "advanced",
      execArgv: ["--disable-sigusr1"],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child = child;
    let said = "";
    child.stderr?.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-saidMost)));
    const started = new Promise<number | Failure>((resolve) => {
      const failed = (message: string): void => resolve(new Failure("no-backend", "proxy", message));
      child.on("message", (word: NaiveWord) => {
        if (word.kind === "failed") return failed(word.message);
        this.#port = word.port;
        resolve(word.port);
      });
      child.on("error", (error) => failed(error.message));
      // "close" waits until its stderr is read to the end; "exit" does not.
      child.on("close", (code) => {
        const why = /^\w*Error: .*$/m.exec(said)?.[0] ?? `exit code ${code}`;
        failed(why);
        this.#ended(why);
      });
    });
    child.send({ ...this.#order, port: this.#port } satisfies NaiveOrder, () => {}); // a failure ends in "close"
    return started;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
    this.#child?.kill("SIGKILL");
  }

  #ended(why: string): void {
    if (this.#isStopped) return;
    this.ends += 1;
    this.#onEnd(why);
    this.#cancel = this.#clock.after(restartMs, () => void this.start());
  }
}
