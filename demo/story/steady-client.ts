/**
 * A client that sends GETs and watches continuously, as a controller does, and measures delays and failures. Like
 * client-go, it continues a watch that ended cleanly, and lists again after a watch that was cut off.
 */
import type { Clock } from "../../src/base/clock.ts";
import { isList, mapOf, textOf } from "../objects/json.ts";
import { Beat, beatOf } from "./beat.ts";
import type { DemoClient } from "./client.ts";

const getPeriodMs = 50;
const watchCount = 4;
/** A watch counts as hung if one of its events is more than this many milliseconds late. */
const hungMs = 1_000;
/** Milliseconds from the end of a watch that was rejected or cut off to the next list request. */
const backoffMs = 100;
/** Milliseconds between the end of a watch and the start of the next one. The pause is as short as in client-go. */
const rewatchMs = 10;

/** The measurements of one client since the latest `reset`. All times are in milliseconds. */
export type Seen = {
  readonly gets: number;
  readonly failedGets: number;
  /** Duration of the slowest GET, including GETs that timed out. */
  readonly slowestGetMs: number;
  readonly watches: number;
  /** Number of watches that the server ended cleanly, so that the client continued them without a new list. */
  readonly ends: number;
  /** Number of watches after which the client had to list again, for example because they were cut off. */
  readonly relists: number;
  /** Number of watches with an event that was more than `hungMs` late. */
  readonly hung: number;
  /** Longest time from a write to its event, in milliseconds. */
  readonly latestEventMs: number;
  /**
   * Number of events that break the sequence of writes, because they skip or repeat a write. A write that the client
   * has received in a list does not count as skipped.
   */
  readonly wrongEvents: number;
};

export type SteadyClientParts = {
  readonly connect: () => DemoClient;
  readonly beat: Beat;
  readonly clock: Clock;
};

export class SteadyClient {
  readonly #parts: SteadyClientParts;
  readonly #watches: SteadyWatch[];
  #client: DemoClient;
  #gets = 0;
  #failedGets = 0;
  #slowestGetMs = 0;
  #waiting = 0;
  #isOver = false;
  #cancel = (): void => {};

  constructor(parts: SteadyClientParts) {
    this.#parts = parts;
    this.#client = parts.connect();
    this.#watches = Array.from({ length: watchCount }, () => new SteadyWatch(() => this.#open(), parts));
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Opens one watch after another, and then starts the GETs. */
  async start(): Promise<void> {
    for (const watch of this.#watches) {
      await watch.begin();
      // Each watch takes two requests: a list and the watch. Without one more GET in between, round robin over two
      // backends would give all watches to the same backend.
      await this.#get();
    }
    this.#tick();
  }

  reset(): void {
    this.#gets = 0;
    this.#failedGets = 0;
    this.#slowestGetMs = 0;
    for (const watch of this.#watches) watch.reset();
  }

  seen(): Seen {
    for (const watch of this.#watches) watch.look();
    const sum = (count: (watch: SteadyWatch) => number): number =>
      this.#watches.reduce((total, watch) => total + count(watch), 0);
    return {
      gets: this.#gets,
      failedGets: this.#failedGets,
      slowestGetMs: this.#slowestGetMs,
      watches: this.#watches.length,
      ends: sum(({ ends }) => ends),
      relists: sum(({ relists }) => relists),
      hung: this.#watches.filter(({ latestMs }) => latestMs > hungMs).length,
      latestEventMs: Math.max(...this.#watches.map(({ latestMs }) => latestMs)),
      wrongEvents: sum(({ wrong }) => wrong),
    };
  }

  stop(): void {
    this.#isOver = true;
    this.#cancel();
    for (const watch of this.#watches) watch.stop();
    this.#client.close();
  }

  #open(): DemoClient {
    if (!this.#client.isOpen && !this.#isOver) this.#client = this.#parts.connect();
    return this.#client;
  }

  #tick(): void {
    this.#cancel = this.#parts.clock.after(getPeriodMs, () => this.#tick());
    void this.#get();
  }

  async #get(): Promise<void> {
    const { clock } = this.#parts;
    const begunAt = clock.now();
    this.#waiting += 1;
    const status = await this.#open().ask("GET /api/v1/namespaces/default");
    this.#waiting -= 1;
    this.#gets += 1;
    if (status !== 200) this.#failedGets += 1;
    this.#slowestGetMs = Math.max(this.#slowestGetMs, clock.now() - begunAt);
  }
}

class SteadyWatch {
  readonly #open: () => DemoClient;
  readonly #parts: SteadyClientParts;
  #version = "";
  /** Number of the latest write that the client has received, in an event or a list; 0: none yet. */
  #count = 0;
  /** True if the client must list first, because the server cannot continue the watch from the client's version. */
  #mustList = false;
  #isOver = false;
  #cancel = (): void => {};
  ends = 0;
  relists = 0;
  wrong = 0;
  latestMs = 0;

  constructor(open: () => DemoClient, parts: SteadyClientParts) {
    this.#open = open;
    this.#parts = parts;
  }

  reset(): void {
    this.ends = 0;
    this.relists = 0;
    this.wrong = 0;
    this.latestMs = 0;
  }

  /** Lists, and then watches from the list's version. Retries until both succeed. */
  async begin(): Promise<void> {
    const { status, body } = await this.#open().read(`GET ${Beat.path}`);
    if (this.#isOver) return;
    if (status !== 200) return this.#again();
    this.#version = textOf(mapOf(mapOf(body)["metadata"])["resourceVersion"]);
    const { items = [] } = mapOf(body);
    const counts = isList(items) ? items.map(beatOf) : [];
    this.look();
    this.#count = Math.max(this.#count, ...counts);
    this.#watch();
  }

  /** Updates the longest delay. If the next event has not arrived yet, the time since its write counts as its delay. */
  look(): void {
    this.latestMs = Math.max(this.latestMs, this.#parts.beat.age(this.#count + 1));
  }

  stop(): void {
    this.#isOver = true;
    this.#cancel();
  }

  #again(): void {
    this.#cancel = this.#parts.clock.after(backoffMs, () => void this.begin());
  }

  #watch(): void {
    const path = `${Beat.path}?watch=true&allowWatchBookmarks=true&resourceVersion=${this.#version}`;
    void this.#open().watch(path, {
      event: (event) => {
        const { type, object } = mapOf(event);
        this.#mustList ||= type === "ERROR";
        this.#version = textOf(mapOf(mapOf(object)["metadata"])["resourceVersion"]) || this.#version;
        this.#onWrite(beatOf(object));
      },
      ended: (isClean) => this.#ended(isClean),
    });
  }

  #onWrite(count: number): void {
    if (count === 0) return;
    this.look();
    if (count !== this.#count + 1) this.wrong += 1;
    this.#count = Math.max(this.#count, count);
  }

  #ended(isClean: boolean): void {
    if (this.#isOver) return;
    if (isClean && !this.#mustList) {
      this.ends += 1;
      this.#cancel = this.#parts.clock.after(rewatchMs, () => this.#watch());
    } else {
      this.relists += 1;
      this.#mustList = false;
      this.#again();
    }
  }
}
