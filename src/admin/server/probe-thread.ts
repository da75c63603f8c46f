/**
 * The probe thread: the port of metrics and probes has a thread of its own, so that whoever acts on its answers (a kubelet
 * restarts what does not answer within a second) has them however busy the path is. This end starts the thread, answers
 * its questions, tells it unasked what has changed, and puts another one in its place should it die.
 */
import { Worker } from "node:worker_threads";
import type { Clock } from "../../base/clock.ts";
import { Failure, wordsOf } from "../../base/failure.ts";
import type { Entry, Journal } from "../../events/journal.ts";
import { adminLimits } from "../http/limits.ts";
import type { Answers, Check, ProbeName, Standing } from "./answers.ts";
import type { Admin } from "./server.ts";

/** What the thread is started with. */
export type ProbeThreadOrder = {
  readonly host: string;
  readonly port: number;
  readonly inherited: number | undefined;
  readonly first: Standing;
  readonly contentType: string;
};

export type FromThread =
  | { readonly kind: "opened"; readonly address: string; readonly descriptor: number | undefined }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "asked"; readonly id: number; readonly question: ProbeName | "metrics" }
  | { readonly kind: "told"; readonly entry: Entry };

export type ToThread =
  | { readonly kind: "answer"; readonly id: number; readonly answer: readonly Check[] | string }
  | { readonly kind: "refusal"; readonly id: number; readonly message: string }
  /** Unasked, when it has changed: so a loop that is busy later has said all that it knew. */
  | { readonly kind: "known"; readonly probe: ProbeName; readonly checks: readonly Check[] };

export type ProbeThreadParts = {
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
const threadFile = import.meta.filename.replace(/probe-thread(\.\w+)$/, "probe-thread-main$1");
/** Its own: the process' flags are not for it. */
const resourceLimits = {
  maxOldGenerationSizeMb: adminLimits.lookoutHeapMiB,
  maxYoungGenerationSizeMb: adminLimits.lookoutHeapMiB / 16,
};

export class ProbeThread implements Admin {
  readonly #parts: ProbeThreadParts;
  readonly #unsubscribe: () => void;
  #worker: Worker | undefined;
  /** Where it is, or will be again. */
  #address = "";
  /** Undefined while no thread listens: the number may be another socket's by then. */
  #descriptor: number | undefined;
  #isOpen = false;
  #isLost = false;
  #isStopped = false;
  #cancel = (): void => {};

  private constructor(parts: ProbeThreadParts) {
    this.#parts = parts;
    this.#unsubscribe = parts.answers.onChange((probe, checks) => {
      if (this.#worker !== undefined) send(this.#worker, { kind: "known", probe, checks });
    });
  }

  /** Listens until it is stopped, or says why it cannot. */
  static async start(parts: ProbeThreadParts): Promise<ProbeThread | Failure> {
    const probeThread = new ProbeThread(parts);
    const failure = await probeThread.#open(parts.port, parts.inherited);
    if (failure === undefined) return probeThread;
    await probeThread.stop();
    return failure;
  }

  get address(): string {
    return this.#address;
  }

  get descriptor(): number | undefined {
    return this.#descriptor;
  }

  /** Whatever the thread is doing: its sockets are closed with it. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unsubscribe();
    this.#cancel();
    await this.#worker?.terminate();
  }

  /** Resolves when a thread listens, or with the reason for which it is gone. */
  async #open(port: number, inherited?: number): Promise<Failure | undefined> {
    const worker = this.#begin(port, inherited);
    if (worker instanceof Failure) return worker;
    const outcome = Promise.withResolvers<Failure | undefined>();
    const fail = (reason: unknown): void => outcome.resolve(failed(reason));
    worker.on("message", (message: FromThread) => {
      if (message.kind === "failed") fail(message.message);
      else if (message.kind === "opened") outcome.resolve(this.#opened(message));
      else this.#heard(message, worker);
    });
    worker.on("error", (reason: unknown) => (this.#isOpen ? this.#contained(reason) : fail(reason)));
    worker.on("exit", (code) => {
      fail(`listener metrics: its thread ended with ${code}`);
      this.#gone();
    });
    const failure = await outcome.promise;
    if (failure !== undefined) await worker.terminate();
    return failure;
  }

  /** No thread can be had: none that the system gives, or no file to read it from. */
  #begin(port: number, inherited: number | undefined): Worker | Failure {
    const { host, answers, contentType, thread = threadFile } = this.#parts;
    const order: ProbeThreadOrder = { host, port, inherited, first: answers.standing(), contentType };
    try {
      this.#worker = new Worker(thread, { workerData: order, execArgv: [], resourceLimits });
      return this.#worker;
    } catch (reason) {
      return failed(reason);
    }
  }

  #opened({ address, descriptor }: Extract<FromThread, { kind: "opened" }>): undefined {
    this.#address = address;
    this.#descriptor = descriptor;
    this.#isOpen = true;
    this.#isLost = false;
  }

  #heard(message: Extract<FromThread, { kind: "told" | "asked" }>, worker: Worker): void {
    if (message.kind === "told") this.#parts.journal.write(message.entry);
    else void this.#answer(message, worker);
  }

  async #answer({ id, question }: Extract<FromThread, { kind: "asked" }>, worker: Worker): Promise<void> {
    const { answers } = this.#parts;
    try {
      const answer = await (question === "metrics" ? answers.scrape() : answers.checks(question));
      send(worker, { kind: "answer", id, answer });
    } catch (error) {
      send(worker, { kind: "refusal", id, message: wordsOf(error) });
    }
  }

  #gone(): void {
    const wasOpen = this.#isOpen;
    this.#worker = undefined;
    this.#descriptor = undefined;
    this.#isOpen = false;
    // One that never listened is the affair of whoever opened it.
    if (wasOpen) this.#retry();
  }

  /** Where it was bound another one is to be, and tries until it is. */
  #retry(): void {
    if (this.#isStopped) return;
    this.#cancel = this.#parts.clock.after(adminLimits.apiRetryMs, () => void this.#reopen());
  }

  async #reopen(): Promise<void> {
    const failure = await this.#open(Number(this.#address.split(":").at(-1)));
    if (failure === undefined || this.#isStopped) return;
    const { message: reason } = failure;
    if (!this.#isLost) this.#parts.journal.write({ kind: "listener.lost", listener: "metrics", reason });
    this.#isLost = true;
    this.#retry();
  }

  #contained(reason: unknown): void {
    const message = `Metrics port: ${wordsOf(reason)}`;
    this.#parts.journal.write({ kind: "internal.error", scope: "session", message });
  }
}

function failed(reason: unknown): Failure {
  return new Failure("bad-request", "proxy", wordsOf(reason));
}

function send(worker: Worker, message: ToThread): void {
  worker.postMessage(message, []);
}
