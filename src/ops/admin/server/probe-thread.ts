/**
 * Runs the port of metrics and probes in a thread of its own, which answers probes even while requests keep the main
 * thread busy. This file runs in the main thread: it starts, answers and, if necessary, replaces the other thread.
 */
import type { SecureContextOptions } from "node:tls";
import { Worker } from "node:worker_threads";
import type { Clock } from "../../../base/clock.ts";
import { Failure, wordsOf } from "../../../base/failure.ts";
import type { Entry } from "../../../events/journal.ts";
import type { ServingPair } from "../../../proxy/tls/serving-pair.ts";
import { ownModule } from "../../program/own-files.ts";
import type { AccessRequest, Admitted } from "../authorization/authorization.ts";
import { adminLimits } from "../http/limits.ts";
import type { Reply } from "../http/reply.ts";
import type { Answers, Check, ProbeChecks, ProbeName } from "./answers.ts";
import type { Admin, AdminOptions } from "./server.ts";

export type ProbeThreadOrder = Pick<ProbeThreadParts, "host" | "port" | "inherited" | "contentType"> & {
  readonly first: ProbeChecks;
  /** TLS options and the certificate at the start; undefined: plain HTTP. */
  readonly tls:
    | { readonly pair: ServingPair | undefined; readonly options: SecureContextOptions }
    | undefined;
  /** True if requests for /metrics must be authorized. The probe thread then asks the main thread. */
  readonly isGuarded: boolean;
};

/** `Question`: what the probe thread asks the main thread. `Answer`: the main thread's answer. */
export type Question = ProbeName | "metrics" | AccessRequest;
export type Answer = readonly Check[] | string | Admitted | Reply;

export type FromThread =
  | { readonly kind: "opened"; readonly address: string; readonly descriptor: number | undefined }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "asked"; readonly id: number; readonly question: Question }
  | { readonly kind: "told"; readonly entry: Entry };

export type ToThread =
  | { readonly kind: "answer"; readonly id: number; readonly answer: Answer }
  | { readonly kind: "refusal"; readonly id: number; readonly message: string }
  /** Sent whenever checks change, so that the probe thread has the latest ones if the main thread becomes busy. */
  | { readonly kind: "known"; readonly probe: ProbeName; readonly checks: readonly Check[] }
  | { readonly kind: "pair"; readonly pair: ServingPair };

export type ProbeThreadParts = Omit<AdminOptions, "asker" | "guard"> & {
  readonly clock: Clock;
  readonly answers: Answers;
  /** Authorizes requests for /metrics; default: none. */
  readonly admit?: ((request: AccessRequest) => Promise<Admitted | Reply>) | undefined;
  /** Main file of the thread; default: probe-thread-main beside this file. */
  readonly thread?: string | URL;
};

const threadFile = ownModule("src/ops/admin/server/probe-thread-main");
/** Memory limits of the thread. Node's command-line options for memory do not apply to threads. */
const resourceLimits = {
  maxOldGenerationSizeMb: adminLimits.probeThreadHeapMiB,
  maxYoungGenerationSizeMb: adminLimits.probeThreadHeapMiB / 16,
};

export class ProbeThread implements Admin {
  readonly #parts: ProbeThreadParts;
  readonly #unsubscribe: () => void;
  #worker: Worker | undefined;
  /** The port's address, as host:port. Kept while the thread is replaced; "" until the port first opens. */
  #address = "";
  /** Descriptor of the listening socket. Undefined once the thread has ended: the kernel may reuse the number. */
  #descriptor: number | undefined;
  #isOpen = false;
  #isLost = false;
  #isStopped = false;
  #cancel = (): void => {};

  private constructor(parts: ProbeThreadParts) {
    this.#parts = parts;
    const stops = [
      parts.answers.onChange((probe, checks) => this.#tell({ kind: "known", probe, checks })),
      // The journal entry is written before the new certificate is in use, so the certificate is sent to the probe
      // thread in the next turn of the event loop.
      parts.journal.subscribe(({ kind }) => {
        if (kind === "certificate.loaded") parts.clock.soon(() => this.#sendPair());
      }),
    ];
    this.#unsubscribe = () => {
      for (const stop of stops) stop();
    };
  }

  /** Starts the thread. Resolves when it listens, or with a Failure that says why it does not. */
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

  /** Ends the thread, even if it is busy. The kernel then closes its sockets. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unsubscribe();
    this.#cancel();
    await this.#worker?.terminate();
  }

  #tell(message: ToThread): void {
    if (this.#worker !== undefined) send(this.#worker, message);
  }

  #sendPair(): void {
    const pair = this.#parts.tls?.certificate.current?.pair;
    if (pair !== undefined) this.#tell({ kind: "pair", pair });
  }

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
      fail(`listener metrics: the thread ended with exit code ${code}`);
      this.#gone();
    });
    const failure = await outcome.promise;
    if (failure !== undefined) await worker.terminate();
    return failure;
  }

  #begin(port: number, inherited: number | undefined): Worker | Failure {
    const { host, answers, contentType, tls, admit, thread = threadFile } = this.#parts;
    const order: ProbeThreadOrder = {
      host,
      port,
      inherited,
      first: answers.standing(),
      contentType,
      tls: tls && { pair: tls.certificate.current?.pair, options: tls.options },
      isGuarded: admit !== undefined,
    };
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
    try {
      const answer = await this.#answerTo(question);
      send(worker, { kind: "answer", id, answer });
    } catch (error) {
      send(worker, { kind: "refusal", id, message: wordsOf(error) });
    }
  }

  #answerTo(question: Question): Promise<Answer> {
    const { answers, admit } = this.#parts;
    if (question === "metrics") return answers.scrape();
    if (question === "livez" || question === "readyz") return answers.checks(question);
    if (admit === undefined) throw new Error("No authorization is configured");
    return admit(question);
  }

  #gone(): void {
    const wasOpen = this.#isOpen;
    this.#worker = undefined;
    this.#descriptor = undefined;
    this.#isOpen = false;
    // A thread that ends before it listens is not replaced here, because `#open` returns its failure to the caller.
    if (wasOpen) this.#retry();
  }

  /** After `portRetryMs`, starts another thread for the same address. Repeats this until a thread listens. */
  #retry(): void {
    if (this.#isStopped) return;
    this.#cancel = this.#parts.clock.after(adminLimits.portRetryMs, () => void this.#reopen());
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
