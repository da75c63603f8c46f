/**
 * The parent's side of the process that queries Kubernetes with a kubeconfig (discover-child.ts). The package for it
 * takes 85 MB, runs credential plugins and has had bugs that end a process. Any crash of the child is one failed
 * question here.
 */
import { type ChildProcess, fork } from "node:child_process";
import { Failure } from "../base/failure.ts";
import { limits } from "../base/limits.ts";
import { discoveryLimits } from "./limits.ts";

/** Next to this file, with the same extension: .ts in the repository, .js as published. */
export const childFile = import.meta.filename.replace("kubernetes-child", "discover-child");

/** Characters kept of the end of its stderr. */
const wordsChars = 500;

export class KubernetesChild {
  /** Its name in messages: "discovery". */
  readonly #name: string;
  readonly #file: string;
  #child: ChildProcess | undefined;
  #id = 0;
  /** The end of the child's stderr, where Node prints why it ended. */
  #words = "";

  /** The first question starts the child, and so does the next one after it ends. */
  constructor(name: string, file = childFile) {
    this.#name = name;
    this.#file = file;
  }

  /**
   * Resolves with the first result of `read`, which gets each message and returns undefined for the reply to another
   * question.
   */
  ask<T>(question: object, read: (message: unknown, id: number) => T | undefined): Promise<T | Failure> {
    this.#id += 1;
    const id = this.#id;
    const child = this.#child ?? this.#start();
    return new Promise((resolve) => {
      const done = (outcome: T | Failure): void => {
        child.off("message", heard);
        child.off("exit", ended);
        child.off("error", failed);
        resolve(outcome);
      };
      const heard = (message: unknown): void => {
        const outcome = read(message, id);
        if (outcome !== undefined) done(outcome);
      };
      const ended = (code: number | null, signal: string | null): void =>
        done(this.#failure(`ended with ${signal ?? String(code)}`));
      const failed = (error: Error): void => done(this.#failure(`cannot be used: ${error.message}`));
      child.on("message", heard);
      child.on("exit", ended);
      child.on("error", failed);
      child.send({ id, ...question }, (error) => {
        if (error !== null) failed(error);
      });
    });
  }

  /** Its "exit" fails all pending questions. */
  kill(): void {
    this.#child?.kill("SIGKILL");
  }

  #start(): ChildProcess {
    const child = fork(this.#file, [], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      // Not our own arguments: the child must not use our inspector port or profiler.
      execArgv: ["--disable-sigusr1", `--max-old-space-size=${discoveryLimits.discoveryHeapMiB}`],
    });
    // Each pending question adds a listener; there are never more.
    child.setMaxListeners(limits.reviewsAtOnce + 10);
    this.#words = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#words = (this.#words + chunk.toString()).slice(-wordsChars);
    });
    const forget = (): void => {
      if (this.#child === child) this.#child = undefined;
    };
    child.once("exit", forget);
    // The child could not be started; without a listener this error would end our process.
    child.on("error", forget);
    this.#child = child;
    return child;
  }

  #failure(what: string): Failure {
    const last =
      this.#words
        .trim()
        .split("\n")
        .find((line) => /error/i.test(line)) ?? "";
    const why = last === "" ? "" : `: ${last}`;
    return new Failure("bad-file", "proxy", `The ${this.#name} child ${what}${why}`);
  }
}
