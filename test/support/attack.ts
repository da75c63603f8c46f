/** The scene of every attack: a proxy in its own process, a backend, and a bystander who must not notice. */
import * as assert from "uvu/assert";
import { Bystander } from "./bystander.ts";
import type { Frame } from "./h2-frames.ts";
import type { PlayedTarget } from "./proxy.ts";
import type { ChildState } from "./proxy-child.ts";
import { ProxyProcess } from "./proxy-process.ts";
import { RawH2 } from "./raw-h2.ts";
import { Target } from "./target.ts";

/** Generous: the machine that runs the tests has others on it. */
const bystanderMs = 4000;

export class Scene {
  readonly proxy: ProxyProcess;
  readonly target: Target;
  readonly bystander: Bystander;
  readonly #clients: RawH2[] = [];
  #seen = { gets: 0, events: 0 };

  private constructor(proxy: ProxyProcess, target: Target) {
    const { port, ca } = proxy.place;
    this.proxy = proxy;
    this.target = target;
    this.bystander = new Bystander(`https://localhost:${port}`, ca);
  }

  static async open(
    options: {
      targets?: readonly PlayedTarget[];
      openFiles?: number;
      extra?: string;
      listeners?: string;
    } = {},
  ): Promise<Scene> {
    const target = await Target.start();
    const targets = [target, ...(options.targets ?? [])].map(({ name, port, ca }) => ({ name, port, ca }));
    const { openFiles, extra, listeners } = options;
    const more = {
      ...(extra === undefined ? {} : { extra }),
      ...(listeners === undefined ? {} : { listeners }),
    };
    const proxy = await ProxyProcess.start({ targets, ...more }, openFiles);
    const scene = new Scene(proxy, target);
    await scene.#moves();
    return scene;
  }

  /** Waits until this backend is one that new clients go to. */
  async ready(backend: string): Promise<void> {
    const line = `watchkeeper_backend_ready{backend="${backend}"} 1`;
    for (let tries = 0; tries < 100; tries += 1) {
      if ((await this.metrics()).includes(line)) return;
      await pause(50);
    }
    throw new Error(`Backend ${backend} is not ready`);
  }

  async metrics(): Promise<string> {
    const answer = await fetch(`http://127.0.0.1:${this.proxy.place.adminPort}/metrics`);
    return answer.text();
  }

  /** An attacker over TLS. */
  async attacker(first?: Frame | null): Promise<RawH2> {
    const { port, ca } = this.proxy.place;
    const client = await RawH2.connect({ port, ca }, first);
    this.#clients.push(client);
    return client;
  }

  /** Waits until no exchange but the bystander's is left. */
  async gone(ms = 20_000): Promise<ChildState> {
    let state = await this.proxy.state();
    for (const beganAt = performance.now(); state.exchanges > 2 && performance.now() - beganAt < ms; ) {
      await pause(50);
      state = await this.proxy.state();
    }
    assert.ok(state.exchanges <= 2, `${state.exchanges} exchanges are left`);
    return state;
  }

  /** After each attack: all of it is gone, the process is well, and the bystander has noticed nothing. */
  async settled(): Promise<ChildState> {
    for (const client of this.#clients.splice(0)) client.destroy();
    const state = await this.gone();
    assert.equal(state.faults, []);
    await this.#moves();
    assert.equal(this.bystander.complaints(), []);
    assert.ok(
      this.bystander.slowestMs < bystanderMs,
      `A bystander's GET took ${this.bystander.slowestMs} ms`,
    );
    this.bystander.slowestMs = 0;
    return state;
  }

  async close(): Promise<void> {
    this.bystander.stop();
    for (const client of this.#clients) client.destroy();
    await this.proxy.stop();
    this.target.stop();
  }

  /** The bystander's watch and its GETs go on. */
  async #moves(): Promise<void> {
    const { gets, events } = this.#seen;
    for (let tries = 0; tries < 200; tries += 1) {
      if (this.bystander.gets > gets + 1 && this.bystander.events > events + 1) break;
      await pause(25);
    }
    assert.ok(this.bystander.gets > gets, "The bystander's GETs stand still");
    assert.ok(this.bystander.events > events, "The bystander's watch stands still");
    this.#seen = { gets: this.bystander.gets, events: this.bystander.events };
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
