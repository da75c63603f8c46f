/**
 * Sends requests to apiservers with a kubeconfig, in a child process (discover-child.ts), because the npm package for
 * it takes 85 MB, runs credential plugins and has had bugs that end a process.
 */
import { type ChildProcess, fork } from "node:child_process";
import { wallClock } from "../base/clock.ts";
import { Failure } from "../base/failure.ts";
import { limits } from "../base/limits.ts";
import type { ApiRequest } from "./json-request.ts";
import { discoveryLimits } from "./limits.ts";
import { type Access, AccountTransport, type Answer, type Transport } from "./transport.ts";

/** A request to the child; `server`: "" for the server that the kubeconfig names. */
export type ChildRequest = ApiRequest &
  Omit<Access, "servers"> & { readonly id: number; readonly kubeconfigFile: string; readonly server: string };

type Refusal = { readonly refusal: string };

/** The child's reply. refusal: this server cannot be asked, or refuses. failure: no server can be asked. */
export type ChildReply = { readonly id: number } & (Answer | Refusal | { readonly failure: string });

type ChildParts = {
  readonly kubeconfigFile: string;
  readonly access: () => Access;
  /** The child's name in messages, such as "discovery". */
  readonly name: string;
  /** The file that the child runs; default: discover-child, as .ts in the repository and as .js when published. */
  readonly file?: string;
};

const childFile = import.meta.filename.replace("kubernetes-child", "discover-child");

/** Characters kept of the end of the child's stderr. */
const wordsChars = 500;

/** Returns the transport for a kubeconfig; undefined: for the pod's service account. */
export function transportOf(
  kubeconfigFile: string | undefined,
  access: () => Access,
  name: string,
): Transport {
  if (kubeconfigFile === undefined) return new AccountTransport(access);
  return new KubernetesChild({ kubeconfigFile, access, name });
}

export class KubernetesChild implements Transport {
  readonly own = "";
  readonly #parts: ChildParts;
  #child: ChildProcess | undefined;
  #id = 0;
  /** The end of the child's stderr, where Node prints why the child ended. */
  #words = "";

  /** The first question starts the child, and the next one starts it again after it has ended. */
  constructor(parts: ChildParts) {
    this.#parts = parts;
  }

  async ask(server: string, request: ApiRequest): Promise<Answer | Failure> {
    const { kubeconfigFile, access } = this.#parts;
    const { caFile, serverName } = access();
    this.#id += 1;
    const question: ChildRequest = { id: this.#id, ...request, kubeconfigFile, server, caFile, serverName };
    const reply = await this.#send(question);
    if (reply instanceof Failure || "answer" in reply) return reply;
    throw new Error(reply.refusal);
  }

  #send(question: ChildRequest): Promise<Answer | Refusal | Failure> {
    const child = this.#child ?? this.#start();
    // The limit is long, so that a child which only starts slowly survives and answers the next question sooner.
    const stopKill = wallClock.after(discoveryLimits.childHungMs, () => child.kill("SIGKILL"));
    return new Promise((resolve) => {
      const done = (outcome: Answer | Refusal | Failure): void => {
        stopKill();
        child.off("message", heard);
        child.off("exit", ended);
        child.off("error", failed);
        resolve(outcome);
      };
      const heard = (message: unknown): void => {
        const outcome = replyIn(message, question.id);
        if (outcome !== undefined) done(outcome);
      };
      const ended = (code: number | null, signal: string | null): void =>
        done(this.#failure(`ended with ${signal ?? String(code)}`));
      const failed = (error: Error): void => done(this.#failure(`cannot be used: ${error.message}`));
      child.on("message", heard);
      child.on("exit", ended);
      child.on("error", failed);
      child.send(question, (error) => {
        if (error !== null) failed(error);
      });
    });
  }

  /** Ends the child. Its "exit" event fails all pending questions. */
  abort(): void {
    this.#child?.kill("SIGKILL");
  }

  #start(): ChildProcess {
    const child = fork(this.#parts.file ?? childFile, [], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      // The child does not inherit our own arguments, because it must not open our inspector's port.
      execArgv: ["--disable-sigusr1", `--max-old-space-size=${discoveryLimits.discoveryHeapMiB}`],
    });
    // Each pending question adds a listener, and there are never more questions than this.
    child.setMaxListeners(limits.reviewsAtOnce + 10);
    this.#words = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#words = (this.#words + chunk.toString()).slice(-wordsChars);
    });
    const forget = (): void => {
      if (this.#child === child) this.#child = undefined;
    };
    child.once("exit", forget);
    // Without a listener, a child that cannot be started would end our process.
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
    return new Failure("bad-file", "proxy", `The ${this.#parts.name} child ${what}${why}`);
  }
}

/** Parses a message of the child. The package may have put anything into it, so every field is checked. */
function replyIn(message: unknown, id: number): Answer | Refusal | Failure | undefined {
  if (typeof message !== "object" || message === null || !("id" in message) || message.id !== id)
    return undefined;
  if ("answer" in message) return { answer: message.answer };
  if ("refusal" in message) return { refusal: String(message.refusal).slice(0, limits.logFieldChars) };
  const why = "failure" in message ? String(message.failure).slice(0, limits.logFieldChars) : "no answer";
  return new Failure("bad-file", "proxy", why);
}
