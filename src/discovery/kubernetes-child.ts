/**
 * The process that asks Kubernetes with a kubeconfig (discover-child.ts): the package for it takes 85 MB, runs credential
 * plugins and has had bugs that end a process. Whatever becomes of the child, here it is one failed question.
 */
import { type ChildProcess, fork } from "node:child_process";
import { Failure } from "../base/failure.ts";
import { limits } from "../base/limits.ts";
import { discoveryLimits } from "./limits.ts";

/** Beside this file, with its extension: .ts in the repository, .js as published. */
export const childFile = import.meta.filename.replace("kubernetes-child", "discover-child");

/** How much of its last words is kept. */
const wordsChars = 500;

export class KubernetesChild {
  /** As it is told: "discovery". */
  readonly #name: string;
  readonly #file: string;
  #child: ChildProcess | undefined;
  #id = 0;
  /** The end of what the child wrote on stderr: Node says there what it died of. */
  #words = "";

  /** Started by the first question, and by the next one after its end. */
  constructor(name: string, file = childFile) {
    this.#name = name;
    this.#file = file;
  }

  /** Resolves with what `read` makes of a message; it is given each, and returns undefined for another's answer. */
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

  /** Its "exit" is the answer to whatever it was asked. */
  kill(): void {
    this.#child?.kill("SIGKILL");
  }

  #start(): ChildProcess {
    const child = fork(this.#file, [], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      // Not our own: an inspector's port or a profile is not for it.
      execArgv: ["--disable-sigusr1", `--max-old-space-size=${discoveryLimits.discoveryHeapMiB}`],
    });
    // Each question that is under way listens; there are never more.
    child.setMaxListeners(limits.reviewsAtOnce + 10);
    this.#words = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#words = (this.#words + chunk.toString()).slice(-wordsChars);
    });
    const forget = (): void => {
      if (this.#child === child) this.#child = undefined;
    };
    child.once("exit", forget);
    // It could not even be started; without a listener that would end this process.
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
