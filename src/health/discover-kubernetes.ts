/**
 * Asks Kubernetes for its apiservers through a child process (discover-child.ts): the package for it takes 85 MB, runs
 * credential plugins and has had bugs that end a process. Whatever becomes of the child, here it is one failed look.
 */
import { type ChildProcess, fork } from "node:child_process";
import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";
import { type Found, foundInReply, type Question } from "./discovered.ts";
import type { Source } from "./discovery.ts";

/** Beside this file, with its extension: .ts in the repository, .js as published. */
const childFile = import.meta.filename.replace("discover-kubernetes", "discover-child");

/** How much of its last words is kept. */
const wordsChars = 500;

export class ChildSource implements Source {
  readonly #question: () => Omit<Question, "id">;
  readonly #file: string;
  #child: ChildProcess | undefined;
  #id = 0;
  /** The end of what the child wrote on stderr: Node says there what it died of. */
  #words = "";

  constructor(question: () => Omit<Question, "id">, file = childFile) {
    this.#question = question;
    this.#file = file;
  }

  get from(): string {
    return this.#question().from;
  }

  ask(): Promise<readonly Found[] | Failure> {
    this.#id += 1;
    const id = this.#id;
    const child = this.#child ?? this.#start();
    return new Promise((resolve) => {
      const done = (outcome: readonly Found[] | Failure): void => {
        child.off("message", heard);
        child.off("exit", ended);
        child.off("error", failed);
        resolve(outcome);
      };
      const heard = (message: unknown): void => {
        const outcome = foundInReply(message, id);
        if (outcome !== undefined) done(outcome);
      };
      const ended = (code: number | null, signal: string | null): void =>
        done(this.#failure(`ended with ${signal ?? String(code)}`));
      const failed = (error: Error): void => done(this.#failure(`cannot be used: ${error.message}`));
      child.on("message", heard);
      child.on("exit", ended);
      child.on("error", failed);
      child.send({ id, ...this.#question() } satisfies Question, (error) => {
        if (error !== null) failed(error);
      });
    });
  }

  /** Its "exit" is the answer then, and the next look starts another. */
  giveUp(): void {
    this.#child?.kill("SIGKILL");
  }

  stop(): void {
    this.#child?.kill("SIGKILL");
  }

  #start(): ChildProcess {
    const child = fork(this.#file, [], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      // Not our own: an inspector's port or a profile is not for it.
      execArgv: ["--disable-sigusr1", `--max-old-space-size=${limits.discoveryHeapMiB}`],
    });
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
    return new Failure("bad-file", "proxy", `The discovery child ${what}${last === "" ? "" : `: ${last}`}`);
  }
}
