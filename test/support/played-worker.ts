import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { protocolVersion, type ToParent, type ToWorker } from "../../src/fleet/workers/messages.ts";
import type { UnsentSocket, WorkerProcess } from "../../src/fleet/workers/worker-process.ts";

/** A worker process whose messages the test sends. */
export class PlayedWorker implements WorkerProcess {
  readonly pid: number;
  readonly stream: Duplex;
  /** The messages that the worker received. */
  readonly got: ToWorker[] = [];
  readonly passed: string[] = [];
  readonly unsent: UnsentSocket[] = [];
  isKilled = false;
  #end = (_reason: string): void => {};

  constructor(pid: number) {
    this.pid = pid;
    this.stream = new Duplex({
      read() {},
      write: (chunk: Buffer, _encoding, done) => {
        this.got.push(JSON.parse(chunk.toString()) as ToWorker);
        done();
      },
    });
  }

  takeUnsent(): readonly UnsentSocket[] {
    return this.unsent.splice(0);
  }

  pass(listener: string, _socket: Socket): boolean {
    this.passed.push(listener);
    return true;
  }

  kill(): void {
    this.isKilled = true;
  }

  onEnd(run: (reason: string) => void): void {
    this.#end = run;
  }

  /** Simulates the end of the process. */
  end(reason: string): void {
    this.#end(reason);
  }

  say(...messages: readonly (ToParent | string)[]): void {
    for (const message of messages)
      this.stream.emit(
        "data",
        Buffer.from(`${typeof message === "string" ? message : JSON.stringify(message)}\n`),
      );
  }

  serve(): void {
    this.say({ kind: "hello", version: protocolVersion }, { kind: "ready" });
  }

  /** Reports that the worker has received all sockets passed to it, and now has `sockets` open. */
  confirm(sockets: number, complaint = ""): void {
    this.say({
      kind: "load",
      sockets,
      h2: sockets,
      h1: 0,
      received: this.passed.length,
      requests: 0,
      complaint,
      limits: {},
    });
  }

  /** Answers all requests received so far. */
  answer(): void {
    for (const message of this.got.splice(0))
      if (message.kind === "ask" || message.kind === "config")
        this.say({ kind: "answer", id: message.id, answer: "" });
  }
}
