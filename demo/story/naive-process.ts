/** Runs the naive proxy in a process of its own. Restarts the process when it ends, as systemd or a kubelet does. */

import type { ChildProcess } from "node:child_process";
import type { Clock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import { ownModule } from "../../src/ops/program/own-files.ts";
import { startServerProcess } from "../apiserver/loopback-server.ts";
import type { NaiveProxyOptions } from "./naive-proxy.ts";

export type NaiveHost = { readonly name: string; readonly certFile: string; readonly keyFile: string };

export type NaiveOrder = Pick<NaiveProxyOptions, "backends" | "ca" | "pair"> & {
  readonly hosts: readonly NaiveHost[];
  readonly port: number;
};

const restartMs = 1_000;

const childFile = ownModule("demo/story/naive-child");

export class NaiveProcess {
  readonly #order: Omit<NaiveOrder, "port">;
  readonly #clock: Clock;
  readonly #onEnd: (why: string) => void;
  #child: ChildProcess | undefined;
  #cancel = (): void => {};
  #port = 0;
  #isStopped = false;
  /** Number of times that the process ended without a call of `stop`. */
  ends = 0;

  constructor(order: Omit<NaiveOrder, "port">, clock: Clock, onEnd: (why: string) => void) {
    this.#order = order;
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  /** Starts the process. Returns its loopback port, which stays the same across restarts. */
  async start(): Promise<number | Failure> {
    const order: NaiveOrder = { ...this.#order, port: this.#port };
    const { child, port, ended } = startServerProcess(childFile, order);
    this.#child = child;
    void ended.then((why) => this.#ended(why));
    const bound = await port;
    if (!(bound instanceof Failure)) this.#port = bound;
    return bound;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
    this.#child?.kill("SIGKILL");
  }

  #ended(why: string): void {
    if (this.#isStopped) return;
    this.ends += 1;
    this.#onEnd(why);
    this.#cancel = this.#clock.after(restartMs, () => void this.start());
  }
}
