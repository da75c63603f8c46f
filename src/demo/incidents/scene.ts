/**
 * Where an incident is played: two apiservers, watchkeeper and the naive proxy in front of both, and clients of either.
 * Prints what happens, with the time since the beginning.
 */
import { wallClock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { isProblems, lineOf } from "../../config/problem.ts";
import { type Entry, Journal } from "../../events/journal.ts";
import type { Running } from "../../main.ts";
import { Beat } from "../story/beat.ts";
import { DemoClient, type DemoClientOptions } from "../story/client.ts";
import { type DemoBackend, DemoFiles } from "../story/files.ts";
import { NaiveProxy } from "../story/naive-proxy.ts";
import { SteadyClient } from "../story/steady-client.ts";
import { embeddedSettings } from "./embedded-setting.ts";
import type { Setting, Settings, Wishes } from "./setting.ts";
import { latenessOf, type Told, toldOf, watchesOf } from "./told.ts";

export type Contender = "watchkeeper" | "naive proxy";

type Parts = {
  readonly files: DemoFiles;
  readonly setting: Setting;
  readonly journal: Journal;
  readonly running: Running;
  readonly naive: NaiveProxy;
  readonly naivePort: number;
  readonly stops: (() => void | Promise<void>)[];
};

const pollMs = 25;
/** An incident that has not been reported by then counts as missed. */
const foundWithinMs = 30_000;
/** The length of the longest name in a story. */
const whoWidth = 17;

export class Scene {
  readonly #parts: Parts;
  readonly #say: (line: string) => void;
  readonly #cancels = new Set<() => void>();
  readonly beat: Beat;
  #begunAt = 0;
  #isOver = false;
  /** Number of messages from the naive proxy's own checks. */
  naiveWords = 0;

  private constructor(parts: Parts, say: (line: string) => void) {
    this.#parts = parts;
    this.#say = say;
    this.beat = new Beat(parts.setting.writeBeat, wallClock);
    parts.journal.subscribe((entry) => this.#heard(entry));
  }

  static async start(
    wishes: Wishes,
    say: (line: string) => void,
    settings: Settings = embeddedSettings,
  ): Promise<Scene | Failure> {
    const files = await DemoFiles.make(wallClock);
    const stops: Parts["stops"] = [() => files.remove()];
    const fail = async (failure: Failure): Promise<Failure> => {
      for (const stop of stops.toReversed()) await stop();
      return failure;
    };
    const setting = await settings.make(wishes, files);
    if (setting instanceof Failure) return fail(setting);
    stops.push(() => setting.stop());
    const { backends, ca } = setting;
    const journal = new Journal(wallClock);
    const listener = wishes.listener?.(files) ?? "";
    const running = await startProxy(files.writeConfig(backends, 0, { listener, ca }), journal);
    if (running instanceof Failure) return fail(running);
    stops.push(() => running.stop(AbortSignal.timeout(500)));
    const naive: NaiveProxy = new NaiveProxy({
      backends,
      ca: `${files.authority.certificate}${ca}`,
      pair: files.issue("naive"),
      clock: wallClock,
      onChange: (...change) => scene.#naiveChanged(...change),
    });
    stops.push(() => naive.stop());
    const naivePort = await naive.start();
    if (naivePort instanceof Failure) return fail(naivePort);
    const scene = new Scene({ files, setting, journal, running, naive, naivePort, stops }, say);
    if (await scene.#isReady()) return scene;
    return fail(new Failure("no-backend", "proxy", "The apiservers did not become ready"));
  }

  get files(): DemoFiles {
    return this.#parts.files;
  }

  get setting(): Setting {
    return this.#parts.setting;
  }

  get backends(): readonly DemoBackend[] {
    return this.#parts.setting.backends;
  }

  /** PEM: the CA of the apiservers. */
  get backendCa(): string {
    return `${this.files.authority.certificate}${this.#parts.setting.ca}`;
  }

  /** Returns the apiserver that serves the most of watchkeeper's watches. */
  async busiest(): Promise<string> {
    const counts = await watchesOf(this.#parts.running.apiAddress);
    const [most] = [...counts].toSorted(([, a], [, b]) => b - a);
    return most?.[0] ?? "";
  }

  /** Starts the clock; from now on watchkeeper's findings are printed. */
  begin(): void {
    this.#begunAt = wallClock.now();
    void this.latenessMs(); // Starts the measurement.
  }

  /** The largest event loop delay of this machine since the beginning: the whole scene runs in one process. */
  latenessMs(): Promise<number> {
    return latenessOf(this.#parts.running.apiAddress);
  }

  /** Milliseconds since the beginning. */
  get ms(): number {
    return wallClock.now() - this.#begunAt;
  }

  told(who: string, what: string): void {
    if (this.#begunAt === 0 || this.#isOver) return;
    this.#say(`${(this.ms / 1_000).toFixed(2).padStart(7)} s  ${who.padEnd(whoWidth)}  ${what}`);
  }

  /** Never resolves once the scene is over, so that nothing continues. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isOver) return;
      const cancel = wallClock.after(ms, () => {
        this.#cancels.delete(cancel);
        resolve();
      });
      this.#cancels.add(cancel);
    });
  }

  portOf(side: Contender): number {
    if (side === "naive proxy") return this.#parts.naivePort;
    return Number(this.#parts.running.addresses.get("kube")?.split(":").at(-1));
  }

  client(side: Contender, options: Partial<DemoClientOptions> = {}): DemoClient {
    const ca = this.files.authority.certificate;
    const fields = { authorization: `Bearer ${this.#parts.setting.token}`, ...options.fields };
    const client = new DemoClient({ port: this.portOf(side), ca, ...options, fields });
    this.atEnd(() => client.close());
    return client;
  }

  steady(side: Contender): SteadyClient {
    const connect = (): DemoClient => this.client(side, { fields: { "user-agent": "watchkeeper-demo" } });
    const client = new SteadyClient({ connect, beat: this.beat, clock: wallClock });
    this.atEnd(() => client.stop());
    return client;
  }

  atEnd(stop: () => void): void {
    this.#parts.stops.push(stop);
  }

  /** Waits until watchkeeper's API reports an incident of this kind; undefined: it did not in time. */
  async found(kind: string): Promise<Told | undefined> {
    const until = wallClock.now() + foundWithinMs;
    while (wallClock.now() < until) {
      const told = await this.latest(kind);
      if (told !== undefined) {
        const text = told.summary.replaceAll(`${this.files.directory}/`, "");
        this.told("watchkeeper", `${kind}: ${text}`);
        return { ...told, afterMs: this.ms };
      }
      await this.pause(pollMs);
    }
    return undefined;
  }

  latest(kind: string): Promise<Told | undefined> {
    return toldOf(this.#parts.running.apiAddress, kind);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    for (const cancel of this.#cancels) cancel();
    for (const stop of this.#parts.stops.toReversed()) await stop();
  }

  async #isReady(): Promise<boolean> {
    let client = this.client("naive proxy");
    const states = new Map<string, string>();
    const forget = this.#parts.journal.subscribe((entry) => {
      if (entry.kind === "backend.changed") states.set(entry.backend, entry.to);
    });
    let isReady = false;
    for (let tries = 0; tries < 400 && !isReady; tries += 1) {
      await this.pause(pollMs);
      const answered = await client.ask("GET /readyz");
      if (answered === 0) client = this.client("naive proxy"); // The session may be lost.
      isReady = answered === 200 && [...states.values()].filter((one) => one === "ready").length === 2;
    }
    forget();
    return isReady;
  }

  #heard(entry: Entry): void {
    if (entry.kind === "backend.changed")
      this.told("watchkeeper", `${entry.backend} is ${entry.to}: ${entry.reason}`);
  }

  #naiveChanged(backend: string, isUp: boolean, reason: string): void {
    if (this.#begunAt !== 0) this.naiveWords += 1;
    this.told("naive proxy", `${backend} is ${isUp ? "up" : "down"}: ${reason}`);
  }
}

async function startProxy(file: string, journal: Journal): Promise<Running | Failure> {
  const [{ loadConfig }, { startWatchkeeper }] = await Promise.all([
    import("../../config/config.ts"),
    import("../../main.ts"),
  ]);
  const config = loadConfig(file);
  if (isProblems(config)) return new Failure("bad-file", "proxy", config.map(lineOf).join("\n"));
  return startWatchkeeper(config, { journal });
}
