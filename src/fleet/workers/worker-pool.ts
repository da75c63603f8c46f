/**
 * The workers of this process, which is their parent. Starts a process for each worker, replaces a process that has
 * ended or that drains because of a fault, and passes sockets and messages to the processes. parent.ts acts on the messages from workers.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { Interval } from "../../base/interval.ts";
import type { Journal } from "../../events/journal.ts";
import type { DrainTimes } from "../../proxy/cluster/shutdown-drain.ts";
import { workerLimits } from "./limits.ts";
import type { ToParent, ToWorker } from "./messages.ts";
import { Picker } from "./picker.ts";
import { Worker, type WorkerParts } from "./worker.ts";
import type { WorkerLife } from "./worker-life.ts";
import type { UnsentSocket, WorkerProcess } from "./worker-process.ts";

export type WorkerPoolParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly size: number;
  readonly startProcess: () => WorkerProcess;
  /** Returns the messages that a new worker process gets first, in this order. */
  readonly greeting: () => readonly ToWorker[];
  /** Called for each message from a worker. */
  readonly received: (worker: Worker, message: ToParent) => void;
  /** Called every second, after the pool has checked that the workers answer. */
  readonly looked: () => void;
  /** Called when a worker's process has ended. */
  readonly ended: (worker: Worker) => void;
};

type Waiting = {
  readonly listener: string;
  readonly socket: Socket;
  readonly leave: () => void;
  readonly until: number;
};

export class WorkerPool {
  readonly #parts: WorkerPoolParts;
  readonly #picker = new Picker<Worker>();
  readonly #workers: Worker[] = [];
  /** Workers that drain because of a fault, oldest first. Each has been replaced in `#workers`. */
  #leaving: readonly Worker[] = [];
  /** Sockets that wait for a worker, oldest first. */
  #waiting: Waiting[] = [];
  readonly #asking: Interval;
  readonly #first = Promise.withResolvers<Failure | undefined>();
  /** Clock reading at which the workers were checked last. */
  #lookedAt = 0;
  /** True while all new sockets wait, because the workers do not know a new listener yet (`hold`). */
  #isHeld = false;
  #isEnding = false;
  #onAllEnded: () => void = () => {};

  constructor(parts: WorkerPoolParts) {
    this.#parts = parts;
    this.#asking = new Interval(parts.clock, workerLimits.askEveryMs, () => this.#look());
    for (let place = 1; place <= parts.size; place += 1) this.#workers.push(this.#place(place));
  }

  /** All workers, including those that drain and those whose process has ended and that wait for their next start. */
  get all(): readonly Worker[] {
    return [...this.#workers, ...this.#leaving];
  }

  /** Number of workers whose process runs. */
  get alive(): number {
    return this.all.filter(({ state }) => state !== "dead").length;
  }

  /** Starts all workers. Resolves as soon as one serves, or with a Failure when all of them have ended. */
  start(): Promise<Failure | undefined> {
    for (const worker of this.#workers) worker.start();
    this.#lookedAt = this.#parts.clock.now();
    this.#asking.start();
    return this.#first.promise;
  }

  #place(number: number, life?: WorkerLife): Worker {
    const { clock, journal, startProcess, greeting } = this.#parts;
    const parts: WorkerParts = {
      clock,
      journal,
      startProcess,
      greeting,
      received: (message) => this.#received(worker, message),
      ended: (unsent) => this.#ended(worker, unsent),
    };
    const worker = new Worker(number, parts, life);
    return worker;
  }

  /**
   * Starts a worker in place of one that drains because of a fault: the drain may take as long as a client follows a
   * log, and new clients would wait. At most `size` processes drain; if there are more, the oldest one is killed.
   */
  #replace(worker: Worker): void {
    const place = this.#workers.indexOf(worker);
    if (place < 0 || this.#isEnding) return;
    const [oldest] = this.#leaving;
    if (oldest !== undefined && this.#leaving.length === this.#parts.size) {
      const { number, pid, sockets } = oldest;
      const reason = "it still drained when too many others had to";
      this.#parts.journal.write({ kind: "worker.lost", worker: number, pid, reason, sockets });
      oldest.end(reason);
    }
    this.#leaving = [...this.#leaving, worker];
    let number = 1;
    while (this.all.some((one) => one.number === number)) number += 1;
    const successor = this.#place(number, worker.life.successor());
    this.#workers[place] = successor;
    successor.startLater();
  }

  #received(worker: Worker, message: ToParent): void {
    if (message.kind === "leaving") this.#replace(worker);
    if (message.kind === "ready") this.#first.resolve(undefined);
    if (message.kind === "ready" || message.kind === "load") this.#passWaiting();
    this.#parts.received(worker, message);
  }

  #ended(worker: Worker, unsent: readonly UnsentSocket[]): void {
    this.#parts.ended(worker);
    this.#leaving = this.#leaving.filter((one) => one !== worker);
    for (const { listener, socket } of unsent) this.pass(listener, socket, () => {});
    if (this.#isEnding) {
      if (this.alive === 0) this.#onAllEnded();
      return;
    }
    if (this.alive === 0)
      this.#first.resolve(new Failure("bad-request", "proxy", `No worker has started: ${worker.reason}`));
    if (this.#workers.includes(worker)) worker.startLater();
  }

  send(message: ToWorker): void {
    for (const worker of this.all) worker.send(message);
  }

  /**
   * Passes a client's socket to a worker as soon as one has room, or closes the socket if no worker has room in time.
   * In both cases, calls `leave` afterwards: from then on, the socket no longer counts as open in this process.
   */
  pass(listener: string, socket: Socket, leave: () => void): void {
    const waiting = { listener, socket, leave, until: this.#parts.clock.now() + workerLimits.waitingMs };
    if (this.#tryPass(waiting)) return;
    if (this.#isEnding || this.#waiting.length >= workerLimits.waitingSockets) drop(waiting);
    else this.#waiting.push(waiting);
  }

  #tryPass({ listener, socket, leave }: Waiting): boolean {
    if (this.#isHeld) return false;
    const worker = this.#picker.pick(this.#workers, socket.remoteAddress ?? "");
    if (worker === undefined) return false;
    worker.pass(listener, socket);
    leave();
    return true;
  }

  #passWaiting(): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    const now = this.#parts.clock.now();
    for (const one of waiting)
      if (one.until <= now) drop(one);
      else if (!this.#tryPass(one)) this.#waiting.push(one);
  }

  #look(): void {
    const now = this.#parts.clock.now();
    if (now - this.#lookedAt > 2 * workerLimits.askEveryMs) for (const worker of this.all) worker.forgive();
    this.#lookedAt = now;
    for (const worker of this.all) worker.look();
    this.#parts.looked();
    this.#passWaiting();
  }

  /** Drains all workers, and starts no new processes. Resolves when all processes have ended. */
  drain(times: DrainTimes): Promise<void> {
    this.#isEnding = true;
    this.#dropWaiting();
    const ended = new Promise<void>((resolve) => {
      this.#onAllEnded = resolve;
    });
    for (const worker of this.all) worker.drain(times);
    return this.alive === 0 ? Promise.resolve() : ended;
  }

  /** Passes no socket to a worker until the returned function is called. New sockets wait. */
  hold(): () => void {
    this.#isHeld = true;
    return () => {
      this.#isHeld = false;
      this.#passWaiting();
    };
  }

  #dropWaiting(): void {
    for (const waiting of this.#waiting.splice(0)) drop(waiting);
  }

  /** Kills the processes of all workers, and starts no new ones. */
  kill(): void {
    this.#isEnding = true;
    this.#asking.stop();
    this.#dropWaiting();
    for (const worker of this.all) worker.stop();
  }
}

function drop({ socket, leave }: Waiting): void {
  socket.destroy();
  leave();
}
