/**
 * The lookout: the port of metrics and probes has a thread of its own, so that whoever acts on its answers (a kubelet
 * restarts what does not answer within a second) has them however busy the path is. This end starts the thread, answers
 * its questions, and puts another one in its place should it die.
 */
import { Worker } from "node:worker_threads";
import type { Clock } from "../clock.ts";

import { Failure } from "../failure.ts";
import type { Entry, Journal } from "../journal.ts";
import { limits } from "../limits.ts";
import type { Answers, Check, ProbeName } from "./answers.ts";
import type { Admin } from "./server.ts";

/** What the thread is started with. */
export type LookoutOrder = {
  readonly host: string;
  readonly port: number;
  readonly inherited: number | undefined;
  readonly first: Readonly<Record<ProbeName, readonly Check[]>>;
  readonly contentType: string;
};

export type FromThread =
  | { readonly kind: "opened"; readonly address: string; readonly descriptor: number | undefined }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "asked"; readonly id: number; readonly question: ProbeName | "metrics" }
  | { readonly kind: "told"; readonly entry: Entry }
  | { readonly kind: "stopped" };

export type ToThread =
  | { readonly kind: "answer"; readonly id: number; readonly answer: readonly Check[] | string }
  | { readonly kind: "refusal"; readonly id: number; readonly message: string }
  | { readonly kind: "stop" };

export type LookoutParts = {
  readonly host: string;
  readonly port: number;
  /** A listening socket that was passed in, to be used if it is bound there. */
  readonly inherited: number | undefined;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly answers: Answers;
  readonly contentType: string;
  /** The thread's file; left out: the one beside this. */
  readonly thread?: string | URL;
};

/** Beside this file, with its extension: .ts in the repository, .js as published. */
const threadFile = import.meta.filename.replace(/lookout(\.\w+)$/, "lookout-thread$1");
/** In MiB: what the thread needs is 5; flags of the process are not for it. */
const threadHeap = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 };

export class Lookout implements Admin {
  readonly #parts: LookoutParts;
  #worker: Worker | undefined;
  #opened = { address: "", descriptor: undefined as number | undefined };
  #isStopped = false;
  #cancel = (): void => {};

  private constructor(parts: LookoutParts) {
    this.#parts = parts;
  }

  /** Listens until it is stopped, or says why it cannot. */
  static async start(parts: LookoutParts): Promise<Lookout | Failure> {
    const lookout = new Lookout(parts);
    return (await lookout.#open(parts.port, parts.inherited)) ?? lookout;
  }

  get address(): string {
    return this.#opened.address;
  }

  get descriptor(): number | undefined {
    return this.#opened.descriptor;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel();
    const worker = this.#worker;
    if (worker === undefined) return;
    const stopped = Promise.withResolvers<undefined>();
    worker.once("exit", () => stopped.resolve(undefined));
    send(worker, { kind: "stop" });
    await stopped.promise;
  }

  async #open(port: number, inherited?: number): Promise<Failure | undefined> {
    const { host, answers, contentType, thread = threadFile } = this.#parts;
    const first = { livez: await answers.checks("livez"), readyz: await answers.checks("readyz") };
    const order: LookoutOrder = { host, port, inherited, first, contentType };
    const worker = new Worker(thread, { workerData: order, execArgv: [], resourceLimits: threadHeap });
    this.#worker = worker;
    const outcome = Promise.withResolvers<Failure | undefined>();
    worker.on("message", (message: FromThread) => {
      if (message.kind === "opened") this.#opened = message;
      if (message.kind === "opened") outcome.resolve(undefined);
      else if (message.kind === "failed")
        outcome.resolve(new Failure("bad-request", "proxy", message.message));
      else this.#heard(message, worker);
    });
    worker.on("error", (error) => this.#contained(error));
    worker.on("exit", (code) => {
      outcome.resolve(new Failure("bad-request", "proxy", `listener metrics: its thread ended with ${code}`));
      if (this.#worker === worker) this.#lost();
    });
    const failure = await outcome.promise;
    if (failure === undefined) return undefined;
    this.#worker = undefined;
    await worker.terminate();
    return failure;
  }

  #heard(message: Exclude<FromThread, { kind: "opened" | "failed" }>, worker: Worker): void {
    if (message.kind === "told") this.#parts.journal.write(message.entry);
    if (message.kind === "asked") void this.#answer(message, worker);
    if (message.kind === "stopped") void worker.terminate();
  }

  async #answer({ id, question }: Extract<FromThread, { kind: "asked" }>, worker: Worker): Promise<void> {
    const { answers } = this.#parts;
    try {
      const answer = await (question === "metrics" ? answers.scrape() : answers.checks(question));
      send(worker, { kind: "answer", id, answer });
    } catch (error) {
      send(worker, { kind: "refusal", id, message: error instanceof Error ? error.message : String(error) });
    }
  }

  /** It died; where it was bound another one is to be, and tries until it is. */
  #lost(): void {
    this.#worker = undefined;
    if (this.#isStopped) return;
    this.#cancel = this.#parts.clock.after(limits.apiRetryMs, () => void this.#reopen());
  }

  async #reopen(): Promise<void> {
    const port = Number(this.#opened.address.split(":").at(-1));
    const failure = await this.#open(port);
    if (failure === undefined) return;
    this.#contained(failure);
    this.#lost();
  }

  #contained({ message }: { readonly message: string }): void {
    this.#parts.journal.write({
      kind: "fault.contained",
      ring: "session",
      message: `Metrics port: ${message}`,
    });
  }
}

function send(worker: Worker, message: ToThread): void {
  worker.postMessage(message, []);
}
