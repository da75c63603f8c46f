/** The scene of every attack: a proxy in its own process, a backend, and a bystander who must not notice. */
import type { Test } from "uvu";
import * as assert from "uvu/assert";
import { Bystander } from "./bystander.ts";
import type { Frame } from "./h2-frames.ts";
import type { PlayedTarget } from "./proxy.ts";
import type { ChildOptions, ChildState } from "./proxy-child.ts";
import { ProxyProcess } from "./proxy-process.ts";
import { RawH2 } from "./raw-h2.ts";
import { Target } from "./target.ts";

/** Generous: the machine that runs the tests has others on it. */
const bystanderMs = 4000;
/** Its events come every 100 ms. */
const gapMs = 1000;
/** What an attack may leave behind in the proxy's memory, and for how long it may be more. */
const leftBytes = 32 << 20;
const leftMs = 10_000;

export const times = <T>(count: number, of: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => of(at));

/** What the proxy is like; `openFiles` are the descriptors that it may have, `heapMiB` what its old space may grow to. */
export type SceneOptions = Omit<ChildOptions, "targets"> & {
  /** Beside the target. */
  readonly targets?: readonly PlayedTarget[];
  readonly openFiles?: number;
  readonly heapMiB?: number;
  readonly env?: Readonly<Record<string, string>>;
};

type Cast = { readonly proxy: ProxyProcess; readonly target: Target; readonly bystander: Bystander };

/** The scene of all tests of a file: opened before them, settled after each, and closed. `options` are asked for then. */
export function sceneOf(test: Test, options: () => SceneOptions = () => ({})): Scene {
  const scene = new Scene();
  test.before(() => scene.open(options()));
  // uvu says nothing of what a hook throws behind a test that has failed.
  test.after.each(async () => {
    const told = (reason: unknown): never => {
      process.stdout.write(`\nThe scene does not settle: ${String(reason)}\n`);
      throw reason;
    };
    await scene.settled().catch(told);
  });
  test.after(() => scene.close());
  return scene;
}

export class Scene {
  #cast: Cast | undefined;
  readonly #clients: RawH2[] = [];
  #seen = { gets: 0, events: 0 };
  /** Before the present attack. */
  #rssBytes = 0;

  static async open(options: SceneOptions = {}): Promise<Scene> {
    const scene = new Scene();
    await scene.open(options);
    return scene;
  }

  get proxy(): ProxyProcess {
    return this.#onStage.proxy;
  }

  get target(): Target {
    return this.#onStage.target;
  }

  get bystander(): Bystander {
    return this.#onStage.bystander;
  }

  get #onStage(): Cast {
    if (this.#cast === undefined) throw new Error("The scene is not open yet");
    return this.#cast;
  }

  async open({ targets: others = [], openFiles, heapMiB, env, ...more }: SceneOptions): Promise<void> {
    const target = await Target.start();
    const targets = [target, ...others].map(({ name, port, ca }) => ({ name, port, ca }));
    const proxy = await ProxyProcess.start({ ...more, targets }, openFiles, heapMiB, env);
    const { port, ca } = proxy.place;
    this.#cast = { proxy, target, bystander: new Bystander(`https://localhost:${port}`, ca) };
    await this.#moves();
    // No attack delayed what waited for the backends to become ready.
    this.bystander.slowestMs = 0;
    this.bystander.longestGapMs = 0;
    // What a first session makes grow for good is no attack's doing.
    const first = await this.attacker();
    first.destroy();
    this.#rssBytes = (await this.gone()).rssBytes;
  }

  /**
   * Sockets by the thousand have been small pieces of malloc's, which keeps them for the next ones (no leak: the same attack
   * again adds nothing, and what is live goes back at once): from now on RSS is held to what it is now.
   */
  async measureFromHere(): Promise<void> {
    this.#rssBytes = (await this.gone()).rssBytes;
  }

  /** Waits until this backend is one that new clients go to. */
  async ready(backend: string): Promise<void> {
    const line = `watchkeeper_backend_ready{backend="${backend}"} 1`;
    // One that has fallen again and again is let in later and later.
    for (let tries = 0; tries < 800; tries += 1) {
      if ((await this.metrics()).includes(line)) return;
      await pause(50);
    }
    const facts = (await this.metrics()).split("\n").filter((of) => of.includes(`backend="${backend}"`));
    throw new Error(`Backend ${backend} is not ready:\n${facts.join("\n")}`);
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
  async settled({ isCrowd = false, mostLeftBytes = leftBytes } = {}): Promise<ChildState> {
    for (const client of this.#clients.splice(0)) client.destroy();
    // Thousands of sockets leave memory behind: the test that opened them checks what is live.
    const state = isCrowd ? await this.gone() : await this.#shrunk(await this.gone(), mostLeftBytes);
    assert.equal(state.faults, []);
    await this.#moves();
    assert.equal(this.bystander.complaints(), []);
    assert.ok(
      this.bystander.slowestMs < bystanderMs,
      `A bystander's GET took ${this.bystander.slowestMs} ms`,
    );
    const { longestGapMs } = this.bystander;
    assert.ok(longestGapMs <= gapMs, `A bystander's watch was silent for ${Math.round(longestGapMs)} ms`);
    this.bystander.slowestMs = 0;
    this.bystander.longestGapMs = 0;
    this.#rssBytes = state.rssBytes;
    return state;
  }

  /** Memory goes back to the system when it pleases: within ten seconds it has to. */
  async #shrunk(first: ChildState, mostBytes: number): Promise<ChildState> {
    const grown = (): number => this.proxy.rssBytes - this.#rssBytes;
    for (const beganAt = performance.now(); grown() > mostBytes && performance.now() - beganAt < leftMs; )
      await pause(250);
    assert.ok(grown() <= mostBytes, `RSS has grown by ${grown() >> 20} MiB`);
    return { ...first, rssBytes: this.proxy.rssBytes };
  }

  /** Lets all attackers go, and waits until what is live is back to within eight MiB of this. */
  async settledLive(heapBytes: number): Promise<void> {
    for (const client of this.#clients.splice(0)) client.destroy();
    let { heapBytes: now } = await this.gone();
    for (let tries = 0; tries < 40 && now - heapBytes > 8 << 20; tries += 1) {
      await pause(250);
      now = (await this.proxy.state()).heapBytes;
    }
    assert.ok(now - heapBytes <= 8 << 20, `${(now - heapBytes) >> 20} MiB more are live`);
  }

  /** Also when it was never opened: why that was is then told. */
  async close(): Promise<void> {
    if (this.#cast === undefined) return;
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
