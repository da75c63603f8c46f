/**
 * Sends requests to apiservers with a kubeconfig. A child process (discover-child.ts) does the work, because the npm
 * package that reads kubeconfigs takes 85 MB, runs credential plugins and has had bugs that end a process.
 */

import { type ChildProcess, fork } from "node:child_process";
import { wallClock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { ownModule } from "../program/own-files.ts";
import { discoveryLimits } from "./limits.ts";
import { type Access, AccountTransport, type Answer, type ApiRequest, type Transport } from "./transport.ts";

/** A request to the child process. `server`: URL of the apiserver; "": the server that the kubeconfig names. */
export type ChildRequest = ApiRequest &
  Omit<Access, "servers"> & { readonly id: number; readonly kubeconfigFile: string; readonly server: string };

type Refusal = { readonly refusal: string };

/**
 * The child's reply. refusal: this apiserver cannot be reached, or refuses the request. failure: no apiserver can be
 * asked, for example because the kubeconfig cannot be read.
 */
export type ChildReply = { readonly id: number } & (Answer | Refusal | { readonly failure: string });

type ChildParts = {
  readonly kubeconfigFile: string;
  readonly access: () => Access;
  /** The child's name in messages, such as "discovery". */
  readonly name: string;
  /** The file that the child runs; default: discover-child. */
  readonly file?: string;
};

const childFile = ownModule("src/ops/discovery/discover-child");

const stderrChars = 500;

/** Returns the transport for a kubeconfig. Without a kubeconfig, the transport uses the pod's service account. */
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
  #stderrEnd = "";

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
    // Kills the child only after `childHungMs`, which is longer than a request waits for its reply, because a child
    // that is merely slow to start can answer the next request.
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

  /** Ends the child process. The child's "exit" event fails all pending requests. */
  abort(): void {
    this.#child?.kill("SIGKILL");
  }

  #start(): ChildProcess {
    const child = fork(this.#parts.file ?? childFile, [], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      // The child does not inherit the proxy's arguments. With --inspect, for example, it would try to listen on the
      // same port as the proxy.
      execArgv: ["--disable-sigusr1", `--max-old-space-size=${discoveryLimits.discoveryHeapMiB}`],
    });
    // Raises the number of listeners at which Node warns: each pending request adds one listener, and `reviewsAtOnce`
    // requests may be pending.
    child.setMaxListeners(limits.reviewsAtOnce + 10);
    this.#stderrEnd = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#stderrEnd = (this.#stderrEnd + chunk.toString()).slice(-stderrChars);
    });
    const forget = (): void => {
      if (this.#child === child) this.#child = undefined;
    };
    child.once("exit", forget);
    // Without an "error" listener, a child that cannot be started would end the proxy's process.
    child.on("error", forget);
    this.#child = child;
    return child;
  }

  #failure(what: string): Failure {
    const last =
      this.#stderrEnd
        .trim()
        .split("\n")
        .find((line) => /error/i.test(line)) ?? "";
    const why = last === "" ? "" : `: ${last}`;
    return new Failure("bad-file", "proxy", `The ${this.#parts.name} child ${what}${why}`);
  }
}

/** Checks every field of a child's message, because the npm package in the child is not trusted. */
function replyIn(message: unknown, id: number): Answer | Refusal | Failure | undefined {
  if (typeof message !== "object" || message === null || !("id" in message) || message.id !== id)
    return undefined;
  if ("answer" in message) return { answer: message.answer };
  if ("refusal" in message) return { refusal: String(message.refusal).slice(0, limits.logFieldChars) };
  const why = "failure" in message ? String(message.failure).slice(0, limits.logFieldChars) : "no answer";
  return new Failure("bad-file", "proxy", why);
}
