/**
 * One embedded apiserver as the demo uses it: its process, and the TCP relay in front of it that can simulate an
 * outage.
 */
import type { Clock } from "../../base/clock.ts";
import type { Failure } from "../../base/failure.ts";
import type { Pair } from "../../pki/pki.ts";
import type { Store } from "../objects/store.ts";
import { Apiserver, type Encoding } from "./apiserver.ts";
import { ApiserverProcess } from "./apiserver-process.ts";
import { Hose } from "./hose.ts";

/** The faults that can be injected into an apiserver. */
export const faultKinds = ["hole", "freeze", "restart"] as const;
export type FaultKind = (typeof faultKinds)[number];

export type EmbeddedOptions = {
  readonly name: string;
  readonly store: Store;
  readonly clock: Clock;
  readonly pair: Pair;
  /** The option of Apiserver. */
  readonly encodingFor?: (accept: string) => Encoding | undefined;
};

export class Embedded {
  readonly name: string;
  readonly #apiserver: Apiserver;
  readonly #process: ApiserverProcess;
  readonly #hose: Hose;

  constructor({ pair, ...options }: EmbeddedOptions) {
    this.name = options.name;
    this.#apiserver = new Apiserver(options);
    this.#process = new ApiserverProcess({
      ...pair,
      handle: (ask, answer) => this.#apiserver.handle(ask, answer),
    });
    this.#hose = new Hose(() => this.#process.port);
  }

  /** Number of watches that it serves now. */
  get watchCount(): number {
    return this.#apiserver.watchCount;
  }

  /** Returns the loopback port on which it can be reached. */
  async start(): Promise<number | Failure> {
    const [failure, port] = await Promise.all([this.#process.start(), this.#hose.start()]);
    return failure ?? port;
  }

  /** Resolves when the fault is in effect. */
  async strike(fault: FaultKind): Promise<void> {
    if (fault === "hole") this.#hose.pinch();
    else if (fault === "freeze") this.#process.freeze();
    else await this.#process.kill();
  }

  /** Removes the fault; a Failure if its process does not come back. */
  async heal(fault: FaultKind): Promise<Failure | undefined> {
    if (fault === "hole") this.#hose.release();
    else if (fault === "freeze") this.#process.thaw();
    else return this.#process.start();
    return undefined;
  }

  async stop(): Promise<void> {
    this.#hose.stop();
    await this.#process.kill();
  }
}
