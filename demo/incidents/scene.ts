/**
 * The scene in which an incident is replayed: two apiservers, watchkeeper and the naive proxy in front of both, and
 * clients of either proxy. Prints what happens, with the time since `begin`.
 */
import { wallClock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import { type Entry, Journal } from "../../src/events/journal.ts";
import type { Running } from "../../src/main.ts";
import { isList, type JsonMap, mapOf, parseJson, textOf } from "../objects/json.ts";
import { Beat } from "../story/beat.ts";
import { DemoClient, type DemoClientOptions } from "../story/client.ts";
import { startProxy } from "../story/demo.ts";
import { type DemoBackend, DemoFiles } from "../story/files.ts";
import { NaiveProxy } from "../story/naive-proxy.ts";
import { SteadyClient } from "../story/steady-client.ts";
import { embeddedSettings } from "./embedded-setting.ts";
import type { Setting, Settings, Wishes } from "./setting.ts";

export type ReportedIncident = {
  readonly kind: string;
  readonly subject: string;
  readonly backend: string;
  readonly summary: string;
  readonly isActive: boolean;
  /** The evidence in the incident, each row as a sentence. */
  readonly evidence: readonly string[];
  /** Milliseconds from `begin` until watchkeeper reported the incident. */
  readonly afterMs: number;
};

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
/** Milliseconds that `found` waits until watchkeeper reports the incident; a later report counts as missing. */
const foundWithinMs = 30_000;
const actorColumnChars = 17;

export class Scene {
  readonly #parts: Parts;
  readonly #say: (line: string) => void;
  readonly #cancels = new Set<() => void>();
  readonly beat: Beat;
  #begunAt = 0;
  #isOver = false;
  /** How often the naive proxy's own health checks have reported a changed state of a backend. */
  naiveWords = 0;

  private constructor(parts: Parts, say: (line: string) => void) {
    this.#parts = parts;
    this.#say = say;
    this.beat = new Beat(parts.setting.writeBeat, wallClock);
    parts.journal.subscribe((entry) => this.#onEntry(entry));
    parts.naive.onChange((...change) => this.#naiveChanged(...change));
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
    const naive = new NaiveProxy({
      backends,
      ca: `${files.authority.certificate}${ca}`,
      pair: files.issue("naive"),
      clock: wallClock,
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

  /** CA bundle of the apiservers, in PEM. */
  get backendCa(): string {
    return `${this.files.authority.certificate}${this.#parts.setting.ca}`;
  }

  /** Returns the name of the apiserver that serves most of watchkeeper's watches. */
  async busiest(): Promise<string> {
    const { items } = await this.#api("watches?limit=500");
    const backends = (isList(items) ? items : []).map((row) => textOf(mapOf(row)["backend"]));
    const counts = [...Map.groupBy(backends, (backend) => backend)].map(([name, { length }]) => ({
      name,
      length,
    }));
    return counts.toSorted((a, b) => b.length - a.length)[0]?.name ?? "";
  }

  /** Begins the incident: from now on, watchkeeper's findings are printed. */
  begin(): void {
    this.#begunAt = wallClock.now();
    void this.latenessMs(); // Resets the measurement, because earlier delays do not matter.
  }

  /**
   * Resolves with the longest event-loop delay (ms) since the previous call. A long delay distorts all measurements,
   * because the proxies and clients run in this process.
   */
  async latenessMs(): Promise<number> {
    const { eventLoopDelayMs } = await this.#api("stats");
    return typeof eventLoopDelayMs === "number" ? eventLoopDelayMs : 0;
  }

  /** Milliseconds since `begin` was called. */
  get ms(): number {
    return wallClock.now() - this.#begunAt;
  }

  report(who: string, what: string): void {
    if (this.#begunAt === 0 || this.#isOver) return;
    this.#say(`${(this.ms / 1_000).toFixed(2).padStart(7)} s  ${who.padEnd(actorColumnChars)}  ${what}`);
  }

  /**
   * Resolves after `ms` milliseconds. Once the scene has ended, it never resolves, so that the loops of simulated
   * clients stop at their next pause.
   */
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

  /**
   * Resolves with watchkeeper's latest incident of this kind; undefined: watchkeeper reported none within 30 s after
   * this call.
   */
  async found(kind: string): Promise<ReportedIncident | undefined> {
    const until = wallClock.now() + foundWithinMs;
    while (wallClock.now() < until) {
      const reported = await this.latest(kind);
      if (reported !== undefined) {
        const text = reported.summary.replaceAll(`${this.files.directory}/`, "");
        this.report("watchkeeper", `${kind}: ${text}`);
        return { ...reported, afterMs: this.ms };
      }
      await this.pause(pollMs);
    }
    return undefined;
  }

  async latest(kind: string): Promise<ReportedIncident | undefined> {
    const { items } = await this.#api(`incidents?kind=${kind}&limit=1`);
    return isList(items) && items.length > 0 ? shownAs(mapOf(items[0])) : undefined;
  }

  /** Reads watchkeeper's JSON API (docs/admin-api.md). Returns {} if there is no response. */
  async #api(path: string): Promise<JsonMap> {
    try {
      const response = await fetch(`http://${this.#parts.running.apiAddress}/api/v1/${path}`);
      return mapOf(parseJson(await response.text()));
    } catch {
      return {}; // The proxy has stopped.
    }
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
      if (answered === 0) client = this.client("naive proxy");
      isReady = answered === 200 && [...states.values()].filter((one) => one === "ready").length === 2;
    }
    forget();
    return isReady;
  }

  #onEntry(entry: Entry): void {
    if (entry.kind === "backend.changed")
      this.report("watchkeeper", `${entry.backend} is ${entry.to}: ${entry.reason}`);
  }

  #naiveChanged(backend: string, isUp: boolean, reason: string): void {
    if (this.#begunAt !== 0) this.naiveWords += 1;
    this.report("naive proxy", `${backend} is ${isUp ? "up" : "down"}: ${reason}`);
  }
}

function shownAs(row: JsonMap): ReportedIncident {
  const { kind, subject, backend, summary, state, evidence } = row;
  return {
    kind: textOf(kind),
    subject: textOf(subject),
    backend: textOf(backend),
    summary: textOf(summary),
    isActive: textOf(state) === "active",
    evidence: isList(evidence) ? evidence.map((one) => textOf(mapOf(one)["text"])) : [],
    afterMs: 0,
  };
}
