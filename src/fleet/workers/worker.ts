/**
 * A worker, as the parent sees it: its present process, the channel to this process, its state (worker-life.ts) and its
 * load. When the process ends, the same worker starts another one.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import type { DrainTimes } from "../../proxy/cluster/shutdown-drain.ts";
import { Channel } from "./channel.ts";
import { workerLimits } from "./limits.ts";
import {
  isToParent,
  protocolVersion,
  type Question,
  type Setup,
  type ToParent,
  type ToWorker,
  type WorkerLoad,
} from "./messages.ts";
import { WorkerLife, type WorkerState } from "./worker-life.ts";
import type { UnsentSocket, WorkerProcess } from "./worker-process.ts";

export type WorkerParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly startProcess: () => WorkerProcess;
  readonly greeting: () => readonly ToWorker[];
  readonly received: (message: ToParent) => void;
  /**
   * Called when the worker's process has ended. `unsent`: sockets for this process that Node had not sent to it yet.
   */
  readonly ended: (unsent: readonly UnsentSocket[]) => void;
};

const noLoad: WorkerLoad = { sockets: 0, h2: 0, h1: 0, received: 0, requests: 0, complaint: "", limits: {} };

type Asked = { at: number; readonly resolve: (answer: unknown) => void };

const lost = new Failure("backend-lost", "proxy", "The worker has ended");

export class Worker {
  /** The worker's number, from 1. It stays the same when the worker starts another process. */
  readonly number: number;
  readonly #parts: WorkerParts;
  readonly life: WorkerLife;
  #process: WorkerProcess | undefined;
  #channel: Channel | undefined;
  #startedAt = 0;
  #load = noLoad;
  /** Number of client sockets that were passed to the present process since its start. */
  #passed = 0;
  #lastId = 0;
  readonly #asked = new Map<number, Asked>();
  #cancelStart = (): void => {};
  #hasGreeted = false;
  /** The latest answer to the question "snapshot"; undefined: the present process has not answered yet. */
  snapshot: unknown;
  /** Why the last process ended; "": the present process runs, or none has been started. */
  reason = "";

  constructor(number: number, parts: WorkerParts, life = new WorkerLife(parts.clock)) {
    this.number = number;
    this.#parts = parts;
    this.life = life;
  }

  get state(): WorkerState {
    return this.life.state;
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  get load(): WorkerLoad {
    return this.#load;
  }

  /**
   * Number of the worker's client sockets, including sockets that were passed to the worker and that it has not
   * confirmed yet.
   */
  get sockets(): number {
    return this.#load.sockets + this.#unconfirmed;
  }

  get #unconfirmed(): number {
    return this.#passed - this.#load.received;
  }

  /** True if another socket can be passed to the worker now. */
  get isOpen(): boolean {
    return (
      this.state === "serving" &&
      this.#load.complaint === "" &&
      this.#unconfirmed < workerLimits.unconfirmedSockets
    );
  }

  start(): void {
    if (!this.life.take("due")) return;
    const process = this.#parts.startProcess();
    this.#process = process;
    this.#startedAt = this.#parts.clock.now();
    this.#load = noLoad;
    this.snapshot = undefined;
    this.#passed = 0;
    this.reason = "";
    this.#hasGreeted = false;
    const channel = new Channel(process.stream, {
      received: (message) => isToParent(message) && this.#received(channel, message),
      closed: (breach) => this.#gone(process, breach === "" ? "it closed its channel" : breach),
    });
    this.#channel = channel;
    process.onEnd((reason) => this.#gone(process, reason));
    this.#parts.journal.write({ kind: "worker.started", worker: this.number, pid: process.pid });
    for (const message of this.#parts.greeting()) this.send(message);
  }

  /**
   * Starts another process after a delay, which grows with each process that ended soon after its start
   * (`WorkerLife.restartMs`).
   */
  startLater(): void {
    this.#cancelStart = this.#parts.clock.after(this.life.restartMs, () => this.start());
  }

  #received(channel: Channel, message: ToParent): boolean {
    if (channel !== this.#channel) return true;
    // The first message, and no other, must be "hello" with this program's `protocolVersion`. Otherwise the channel is
    // closed, because the messages of another version could be misread.
    const isHello = message.kind === "hello" && message.version === protocolVersion;
    if (this.#hasGreeted === isHello) return false;
    this.#hasGreeted = true;
    this.#act(message);
    this.#parts.received(message);
    return true;
  }

  #act(message: ToParent): void {
    const { kind } = message;
    if (kind === "load") this.#load = message;
    else if (kind === "leaving") this.life.take("drain");
    else if (kind === "failed") this.reason = message.message;
    else if (kind === "answer") {
      this.#asked.get(message.id)?.resolve(message.answer);
      this.#asked.delete(message.id);
    } else if (kind === "ready" && this.life.take("ready")) {
      this.#parts.journal.write({ kind: "worker.ready", worker: this.number, pid: this.pid });
    }
  }

  send(message: ToWorker): void {
    this.#channel?.send(message);
  }

  /** Sends a question to the worker. Resolves with the answer, or with a Failure if the process ends first. */
  ask(question: Question): Promise<unknown> {
    return this.#await((id) => ({ kind: "ask", id, question }));
  }

  /** Applies another configuration. Resolves with the reason why the process keeps its present one, or with "". */
  async configure(setup: Setup): Promise<string> {
    const problem = await this.#await((id) => ({ kind: "config", id, ...setup }));
    // If the process has ended, the next one starts with this configuration.
    return typeof problem === "string" ? problem : "";
  }

  #await(messageOf: (id: number) => ToWorker): Promise<unknown> {
    if (this.state === "dead") return Promise.resolve(lost);
    this.#lastId += 1;
    const id = this.#lastId;
    const answer = new Promise<unknown>((resolve) => {
      this.#asked.set(id, { at: this.#parts.clock.now(), resolve });
    });
    this.send(messageOf(id));
    return answer;
  }

  /**
   * Called every second. Kills a process that does not start or answer in time. Asks for the next snapshot once all
   * earlier questions are answered.
   */
  look(): void {
    const now = this.#parts.clock.now();
    if (this.state === "dead") return;
    if (this.state === "starting") {
      if (now - this.#startedAt > workerLimits.startMs) this.end("it did not start in time");
      return;
    }
    const [first] = this.#asked.values();
    if (first !== undefined && now - first.at > workerLimits.hungMs) this.end("it does not answer");
    else if (first === undefined) void this.#askSnapshot();
  }

  /**
   * Called after a stall of the parent. Restarts the time limits for the worker's start and answers, because messages
   * from the worker may have arrived during the stall and not have been read yet.
   */
  forgive(): void {
    const now = this.#parts.clock.now();
    this.#startedAt = now;
    for (const asked of this.#asked.values()) asked.at = now;
  }

  async #askSnapshot(): Promise<void> {
    const process = this.#process;
    const snapshot = await this.ask({ of: "snapshot" });
    if (process === this.#process) this.snapshot = snapshot;
  }

  pass(listener: string, socket: Socket): void {
    if (this.#process?.pass(listener, socket) === true) this.#passed += 1;
  }

  drain(times: DrainTimes): void {
    this.#cancelStart();
    this.life.take("drain");
    this.send({ kind: "drain", times });
  }

  /** Kills the process, because the proxy ends. */
  stop(): void {
    this.life.take("drain");
    this.end("the proxy ends");
  }

  /** Kills the process. `reason` is journaled. */
  end(reason: string): void {
    this.#cancelStart();
    if (this.#process !== undefined) this.#gone(this.#process, reason);
    // If `startProcess` threw, the state is "starting" although there is no process.
    else if (this.life.take("ended")) this.#parts.ended([]);
  }

  #gone(process: WorkerProcess, reason: string): void {
    if (process !== this.#process) return;
    const { state, pid } = this;
    this.#process = undefined;
    const unsent = process.takeUnsent();
    this.#channel?.close();
    this.#channel = undefined;
    // The process may still run, for example if it hangs. If it has ended already, the signal has no effect.
    process.kill();
    if (this.reason === "" || state !== "starting") this.reason = reason;
    this.life.take("ended");
    for (const { resolve } of this.#asked.values()) resolve(lost);
    this.#asked.clear();
    const { sockets } = this.#load;
    if (state !== "draining")
      this.#parts.journal.write({
        kind: "worker.lost",
        worker: this.number,
        pid,
        reason: this.reason,
        sockets,
      });
    this.#parts.ended(unsent);
    this.snapshot = undefined;
    this.#load = noLoad;
    this.#passed = 0;
  }
}
