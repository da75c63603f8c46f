/**
 * The setting of every attack test (a scene): a proxy in its own process, a backend, and a bystander, which is an
 * ordinary client that must not notice the attack.
 */
import type { Test } from "uvu";
import * as assert from "uvu/assert";
import { Bystander } from "./bystander.ts";
import type { Frame } from "./h2-frames.ts";
import type { PlayedTarget } from "./proxy.ts";
import type { ChildOptions, ChildState } from "./proxy-child.ts";
import { ProxyProcess } from "./proxy-process.ts";
import { RawH2 } from "./raw-h2.ts";
import { Target } from "./target.ts";

/**
 * The longest time that a GET of the bystander may take. It is generous, because the machine runs other tests at the
 * same time.
 */
const bystanderMs = 4000;
/** The longest time between two events of the bystander's watch. The backend sends one every 100 ms. */
const gapMs = 1000;
/**
 * `leftBytes` is how far the RSS of the proxy may exceed its baseline after an attack. `leftMs` is how long it may take
 * to shrink to that.
 */
const leftBytes = 32 << 20;
const leftMs = 10_000;

export const times = <T>(count: number, of: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => of(at));

/**
 * Options of the proxy process. `openFiles` is its limit of file descriptors, `heapMiB` the limit of its V8 old space.
 */
export type SceneOptions = Omit<ChildOptions, "targets"> & {
  /** More backends, besides the target. */
  readonly targets?: readonly PlayedTarget[];
  readonly openFiles?: number;
  readonly heapMiB?: number;
  readonly env?: Readonly<Record<string, string>>;
};

type Cast = { readonly proxy: ProxyProcess; readonly target: Target; readonly bystander: Bystander };

/**
 * Opens one scene before the tests of a file, checks it after each test, and closes it at the end. `options` is called
 * when the scene opens.
 */
export function sceneOf(test: Test, options: () => SceneOptions = () => ({})): Scene {
  const scene = new Scene();
  test.before(() => scene.open(options()));
  // uvu does not report an error of this hook if the test itself has failed, so the error is printed here.
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
  /** RSS of the proxy before the present attack. */
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
    // Before this point requests had to wait for the backends to become ready, which is no effect of an attack.
    this.bystander.slowestMs = 0;
    this.bystander.longestGapMs = 0;
    // The first session makes the proxy allocate memory that it keeps. This memory is part of the baseline, not an
    // effect of an attack.
    const first = await this.attacker();
    first.destroy();
    this.#rssBytes = (await this.gone()).rssBytes;
  }

  /**
   * Takes the present RSS as the new baseline. After thousands of sockets malloc keeps their small blocks for later
   * allocations. This is no leak: the same attack again adds nothing, and the live heap shrinks at once.
   */
  async measureFromHere(): Promise<void> {
    this.#rssBytes = (await this.gone()).rssBytes;
  }

  /** Waits until this backend is ready for new clients. */
  async ready(backend: string): Promise<void> {
    const line = `watchkeeper_backend_ready{backend="${backend}"} 1`;
    // The wait is long, because a backend that has failed repeatedly is readmitted after an ever longer delay.
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

  /** Connects an attacker over TLS. */
  async attacker(first?: Frame | null): Promise<RawH2> {
    const { port, ca } = this.proxy.place;
    const client = await RawH2.connect({ port, ca }, first);
    this.#clients.push(client);
    return client;
  }

  /** Waits until at most two requests are active, which are those of the bystander. */
  async gone(ms = 20_000): Promise<ChildState> {
    let state = await this.proxy.state();
    for (const beganAt = performance.now(); state.exchanges > 2 && performance.now() - beganAt < ms; ) {
      await pause(50);
      state = await this.proxy.state();
    }
    assert.ok(state.exchanges <= 2, `${state.exchanges} exchanges are left`);
    return state;
  }

  /**
   * Checks the state after an attack: the requests of the attacker are gone, the process has reported no internal
   * error, and the bystander has noticed nothing.
   */
  async settled({ isCrowd = false, mostLeftBytes = leftBytes } = {}): Promise<ChildState> {
    for (const client of this.#clients.splice(0)) client.destroy();
    // Thousands of sockets leave memory in malloc, so RSS is not checked here. The test that opened them checks the
    // live heap instead.
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

  /**
   * Waits until RSS has grown by at most `mostBytes` over the baseline, and throws after ten seconds. V8 and malloc
   * return memory to the kernel only after a delay.
   */
  async #shrunk(first: ChildState, mostBytes: number): Promise<ChildState> {
    const grown = (): number => this.proxy.rssBytes - this.#rssBytes;
    for (const beganAt = performance.now(); grown() > mostBytes && performance.now() - beganAt < leftMs; )
      await pause(250);
    assert.ok(grown() <= mostBytes, `RSS has grown by ${grown() >> 20} MiB`);
    return { ...first, rssBytes: this.proxy.rssBytes };
  }

  /** Closes all attackers, and waits until the live heap has grown by at most 8 MiB over `heapBytes`. */
  async settledLive(heapBytes: number): Promise<void> {
    for (const client of this.#clients.splice(0)) client.destroy();
    let { heapBytes: now } = await this.gone();
    for (let tries = 0; tries < 40 && now - heapBytes > 8 << 20; tries += 1) {
      await pause(250);
      now = (await this.proxy.state()).heapBytes;
    }
    assert.ok(now - heapBytes <= 8 << 20, `${(now - heapBytes) >> 20} MiB more are live`);
  }

  /** Does nothing if the scene failed to open, so that the reason for the failure is the error that is reported. */
  async close(): Promise<void> {
    if (this.#cast === undefined) return;
    this.bystander.stop();
    for (const client of this.#clients) client.destroy();
    await this.proxy.stop();
    this.target.stop();
  }

  /** Checks that the bystander still receives responses and watch events. */
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
