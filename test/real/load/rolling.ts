/**
 * Apiservers are replaced one after the other while execs run. An exec may end only when its own apiserver is replaced.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Apiserver } from "../rig/apiserver.ts";
import { saidSince } from "../rig/said.ts";
import { places, type Stage } from "./stage.ts";
import { rollOver } from "./troubles.ts";
import { Tunnel } from "./tunnel.ts";

/** An exec and the apiserver that carries it. */
type Exec = { readonly tunnel: Tunnel; readonly on: unknown };

export class Rolling {
  readonly #stage: Stage;
  #execs: readonly Exec[] = [];
  /** Events that must not happen but did. */
  readonly wrong: string[] = [];

  private constructor(stage: Stage) {
    this.#stage = stage;
  }

  static async start(stage: Stage): Promise<Rolling> {
    const rolling = new Rolling(stage);
    rolling.#execs = [await rolling.#open(), await rolling.#open()];
    return rolling;
  }

  async #open(): Promise<Exec> {
    const from = Date.now() - 1_000;
    const tunnel = await Tunnel.open(this.#stage.server, "exec", places.pod);
    if (!(await tunnel.answers())) this.wrong.push("a new exec does not answer");
    const said = saidSince(this.#stage.proxy.logFile, from);
    return { tunnel, on: said.find((line) => line["audit-ID"] === tunnel.auditId)?.["backend"] };
  }

  /** Terminates the apiserver and starts a new process. Resolves 3 s after the proxy sees all apiservers as ready. */
  async replace(apiserver: Apiserver): Promise<void> {
    const { proxy, cluster } = this.#stage;
    let goneAt = Infinity;
    void apiserver.ended.then(() => (goneAt = Date.now()));
    await rollOver(apiserver);
    await proxy.settled(cluster.apiservers.length, 30_000);
    await sleep(3_000);
    for (const { tunnel, on } of this.#execs) {
      if (!tunnel.isOpen && (on !== apiserver.name || tunnel.endedAt < goneAt - 300))
        this.wrong.push(`an exec on ${String(on)} ended when ${apiserver.name} was restarted`);
    }
    this.#execs = await Promise.all(this.#execs.map(async (one) => (one.tunnel.isOpen ? one : this.#open())));
  }

  async stop(): Promise<void> {
    for (const { tunnel } of this.#execs) {
      if (!(await tunnel.answers())) this.wrong.push("an exec that was open at the end does not answer");
      tunnel.close();
    }
  }
}
