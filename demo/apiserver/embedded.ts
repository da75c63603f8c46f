/**
 * An embedded apiserver with injectable faults. Clients reach it through a relay, whose separate process can be frozen
 * or killed. The stored objects are in the parent process, so that they survive every fault.
 */

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Clock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import type { Pair } from "../../src/ops/pki/pki.ts";
import { ownModule } from "../../src/ops/program/own-files.ts";
import type { Store } from "../objects/store.ts";
import { Apiserver, type Encoding } from "./apiserver.ts";
import { Host, type HostOptions } from "./host.ts";
import { startServerProcess } from "./loopback-server.ts";
import type { RelayOrder } from "./relay-child.ts";

export const faultKinds = ["hole", "freeze", "restart"] as const;
export type FaultKind = (typeof faultKinds)[number];

export type EmbeddedOptions = Pick<HostOptions, "loopback"> & {
  readonly name: string;
  readonly store: Store;
  readonly clock: Clock;
  readonly pair: Pair;
  /** Returns the encoding of events for an Accept header; default: always JSON. */
  readonly encodingFor?: (accept: string) => Encoding | undefined;
};

const relayFile = ownModule("demo/apiserver/relay-child");

export class Embedded {
  readonly name: string;
  readonly #apiserver: Apiserver;
  readonly #host: Host;
  #targetPort = 0;
  #child: ChildProcess | undefined;
  /** Port of the relay, which stays the same after a restart; 0 before the first start. */
  #port = 0;

  constructor({ pair, loopback, ...options }: EmbeddedOptions) {
    this.name = options.name;
    this.#apiserver = new Apiserver(options);
    this.#host = new Host({ apiserver: this.#apiserver, ...pair, ...(loopback && { loopback }) });
  }

  get watchCount(): number {
    return this.#apiserver.watchCount;
  }

  /** Starts the apiserver and its relay. Returns the relay's loopback port, to which clients connect. */
  async start(): Promise<number | Failure> {
    const bound = await this.#host.start();
    if (bound instanceof Failure) return bound;
    this.#targetPort = bound;
    return this.#startRelay();
  }

  /** Injects a fault. Resolves when the fault is in effect. */
  async strike(fault: FaultKind): Promise<void> {
    if (fault === "hole") await this.#block(true);
    else if (fault === "freeze") this.#child?.kill("SIGSTOP");
    else await this.#kill();
  }

  /** Removes the fault. Returns a Failure if the relay's process cannot be started again. */
  async heal(fault: FaultKind): Promise<Failure | undefined> {
    if (fault === "hole") await this.#block(false);
    else if (fault === "freeze") this.#child?.kill("SIGCONT");
    else {
      const port = await this.#startRelay();
      if (port instanceof Failure) return port;
    }
    return undefined;
  }

  async stop(): Promise<void> {
    await this.#kill();
    this.#host.stop();
  }

  async #startRelay(): Promise<number | Failure> {
    const order: RelayOrder = { port: this.#port, targetPort: this.#targetPort };
    const { child, port } = startServerProcess(relayFile, order);
    this.#child = child;
    const bound = await port;
    if (bound instanceof Failure) child.kill("SIGKILL");
    else this.#port = bound;
    return bound;
  }

  async #block(isBlocked: boolean): Promise<void> {
    if (this.#child?.connected !== true) return;
    const done = once(this.#child, "message");
    this.#child.send({ isBlocked } satisfies RelayOrder);
    await done;
  }

  async #kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }
}

/** Starts all apiservers and returns their ports. If one does not start, stops all and returns a Failure. */
export async function startAll(apiservers: readonly Embedded[]): Promise<readonly number[] | Failure> {
  const ports: number[] = [];
  for (const bound of await Promise.all(apiservers.map((one) => one.start()))) {
    if (bound instanceof Failure) {
      await stopAll(apiservers);
      return bound;
    }
    ports.push(bound);
  }
  return ports;
}

export async function stopAll(apiservers: readonly Embedded[]): Promise<void> {
  await Promise.all(apiservers.map((one) => one.stop()));
}
