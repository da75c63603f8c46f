/**
 * The parent's side of one embedded apiserver's process: started, frozen, thawed, killed and restarted on its port. The
 * child has the sockets (apiserver-child.ts); each request arrives here whole and is answered from the store.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { Failure } from "../../base/failure.ts";
import type { Answer, Ask } from "./ask.ts";

export type ToChild =
  | { readonly kind: "serve"; readonly certificate: string; readonly key: string; readonly port: number }
  | {
      readonly kind: "head";
      readonly id: number;
      readonly status: number;
      readonly fields: readonly (readonly [string, string])[];
    }
  | { readonly kind: "write"; readonly id: number; readonly bytes: Buffer }
  | { readonly kind: "end"; readonly id: number };

export type FromChild =
  | { readonly kind: "serving"; readonly port: number }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "asked"; readonly id: number; readonly ask: Ask }
  /** How many bytes of a response wait in the child, sent after each write. */
  | { readonly kind: "queued"; readonly id: number; readonly bytes: number }
  | { readonly kind: "gone"; readonly id: number };

export type ApiserverProcessOptions = {
  readonly handle: (ask: Ask, answer: Answer) => void;
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
};

/** Next to this file, with the same extension: .ts in the repository, .js as published. */
const childFile = import.meta.filename.replace("apiserver-process", "apiserver-child");

export class ApiserverProcess {
  readonly #options: ApiserverProcessOptions;
  readonly #answers = new Map<number, RemoteAnswer>();
  #child: ChildProcess | undefined;
  #port = 0;

  constructor(options: ApiserverProcessOptions) {
    this.#options = options;
  }

  /** The loopback port on which it serves; 0 before the first start. */
  get port(): number {
    return this.#port;
  }

  /** Starts the process, on its previous port if it had one; resolves with undefined once it serves. */
  async start(): Promise<Failure | undefined> {
    const child = fork(childFile, [], { serialization: "advanced", execArgv: ["--disable-sigusr1"] });
    this.#child = child;
    const { certificate, key } = this.#options;
    const started = new Promise<Failure | undefined>((resolve) => {
      const failed = (message: string): void => {
        child.kill("SIGKILL");
        resolve(new Failure("no-backend", "proxy", message));
      };
      child.on("message", (message: FromChild) => {
        if (message.kind === "serving") this.#port = message.port;
        if (message.kind === "serving") resolve(undefined);
        else if (message.kind === "failed") failed(message.message);
        else this.#heard(message, child);
      });
      child.on("error", (error) => failed(error.message));
      child.on("exit", (code, signal) => {
        failed(`An apiserver's process ended with ${signal ?? String(code)}`);
        if (this.#child === child) this.#lose();
      });
    });
    send(child, { kind: "serve", certificate, key, port: this.#port });
    return started;
  }

  /** SIGSTOP: the process reads nothing, and its kernel still acknowledges what it receives. */
  freeze(): void {
    this.#child?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child?.kill("SIGCONT");
  }

  /** SIGKILL, frozen or not: the kernel closes its sockets. Resolves when the process has ended. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }

  #heard(message: Exclude<FromChild, { kind: "serving" | "failed" }>, child: ChildProcess): void {
    const answer = this.#answers.get(message.id);
    switch (message.kind) {
      case "asked":
        return this.#asked(message.id, message.ask, child);
      case "queued":
        return answer?.told(message.bytes);
      case "gone":
        this.#answers.delete(message.id);
        return answer?.gone();
      default:
        message satisfies never;
    }
  }

  #asked(id: number, ask: Ask, child: ChildProcess): void {
    const answer = new RemoteAnswer(id, child, () => this.#answers.delete(id));
    this.#answers.set(id, answer);
    this.#options.handle(ask, answer);
  }

  /** Requests that waited for a response through this process have lost it. */
  #lose(): void {
    this.#child = undefined;
    const answers = [...this.#answers.values()];
    this.#answers.clear();
    for (const answer of answers) answer.gone();
  }
}

class RemoteAnswer implements Answer {
  readonly #id: number;
  readonly #child: ChildProcess;
  readonly #onEnd: () => void;
  #queuedBytes = 0;
  #onGone = (): void => {};

  constructor(id: number, child: ChildProcess, onEnd: () => void) {
    this.#id = id;
    this.#child = child;
    this.#onEnd = onEnd;
  }

  head(status: number, fields: readonly (readonly [string, string])[]): void {
    send(this.#child, { kind: "head", id: this.#id, status, fields });
  }

  write(bytes: Buffer): void {
    // Counted here until the child reports it: a frozen child reads nothing, and messages to it wait in this process.
    this.#queuedBytes += bytes.length;
    send(this.#child, { kind: "write", id: this.#id, bytes });
  }

  end(): void {
    this.#onEnd();
    send(this.#child, { kind: "end", id: this.#id });
  }

  queued(): number {
    return this.#queuedBytes;
  }

  onGone(run: () => void): void {
    this.#onGone = run;
  }

  told(queuedBytes: number): void {
    this.#queuedBytes = queuedBytes;
  }

  gone(): void {
    this.#onGone();
  }
}

/** A child that ends meanwhile is noticed by its "exit", so a failed send is ignored here. */
function send(child: ChildProcess, message: ToChild): void {
  if (child.connected) child.send(message, () => {});
}
