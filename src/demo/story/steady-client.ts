/**
 * A client that asks and watches all the time, as a controller does, and measures what it sees: how long its GETs take
 * and which of them fail; what becomes of its watches, and how late the events come. It does what client-go does: a watch
 * that ends between two events is asked for again from its last version, one that breaks off costs a list of everything.
 */
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { isList, mapOf, textOf } from "../objects/json.ts";
import { Beat, beatOf } from "./beat.ts";
import type { DemoClient } from "./client.ts";

/** 20 a second. */
const periodMs = 50;
/** Who asks gives up after this. */
export const patienceMs = 3_000;
const watchCount = 4;
/** A watch that is so late with an event, in which nothing happens, is hung as far as its client can tell. */
const hungMs = 1_000;
/** Between a watch that was refused or broke off and the list that follows. */
const backoffMs = 100;
/** client-go waits no longer than it must before it asks for an ended watch again. */
const rewatchMs = 10;

/** What one client saw since the last `begin`. Times in ms. */
export type Seen = {
  readonly gets: number;
  readonly failedGets: number;
  /** Of those that were answered, and of those that were given up. */
  readonly slowestGetMs: number;
  readonly watches: number;
  /** How often a watch ended cleanly, and how often it broke off and everything had to be listed again. */
  readonly ends: number;
  readonly relists: number;
  /** Watches that once were `hungMs` late. */
  readonly hung: number;
  /** The longest time from a write to its event. */
  readonly latestEventMs: number;
  /** Events that were skipped, or came twice, without a list between that would explain it. */
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

  /** How many GETs wait for their answer. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Opens its watches one after the other, and begins to ask. */
  async start(): Promise<void> {
    for (const watch of this.#watches) {
      await watch.begin();
      // A list and a watch each would put all watches on one of two backends that take turns: this makes it three.
      await this.#get();
    }
    this.#tick();
  }

  /** Counts anew. */
  reset(): void {
    this.#gets = 0;
    this.#failedGets = 0;
    this.#slowestGetMs = 0;
    for (const watch of this.#watches) watch.reset();
  }

  /** What it has seen since it counts. */
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

  /** The session, a new one when the last was lost. */
  #open(): DemoClient {
    if (!this.#client.isOpen && !this.#isOver) this.#client = this.#parts.connect();
    return this.#client;
  }

  #tick(): void {
    this.#cancel = this.#parts.clock.after(periodMs, () => this.#tick());
    void this.#get();
  }

  async #get(): Promise<void> {
    const { clock } = this.#parts;
    const begunAt = clock.now();
    this.#waiting += 1;
    const reply = await this.#open().ask({ method: "GET", path: "/api/v1/namespaces/default" }, patienceMs);
    this.#waiting -= 1;
    this.#gets += 1;
    if (reply instanceof Failure || reply.status !== 200) this.#failedGets += 1;
    this.#slowestGetMs = Math.max(this.#slowestGetMs, clock.now() - begunAt);
  }
}

/** One watch on the beat, kept up. */
class SteadyWatch {
  readonly #open: () => DemoClient;
  readonly #parts: SteadyClientParts;
  #version = "";
  /** The last write of which an event came, or a list told; 0 before the first. */
  #count = 0;
  /** The server said that it cannot go on from this version. */
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

  /** Lists, then watches from there. Tries again until both work. */
  async begin(): Promise<void> {
    const reply = await this.#open().ask({ method: "GET", path: Beat.path }, patienceMs);
    if (this.#isOver) return;
    if (reply instanceof Failure || reply.status !== 200) return this.#again();
    this.#version = textOf(mapOf(mapOf(reply.body)["metadata"])["resourceVersion"]);
    const { items = [] } = mapOf(reply.body);
    const counts = isList(items) ? items.map(beatOf) : [];
    this.look();
    this.#count = Math.max(this.#count, ...counts);
    this.#watch();
  }

  /** Takes the age of what should have come into account. */
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
    this.#open().watch(path, {
      event: (event) => {
        const { type, object } = mapOf(event);
        this.#mustList ||= type === "ERROR";
        this.#version = textOf(mapOf(mapOf(object)["metadata"])["resourceVersion"]) || this.#version;
        this.#heard(beatOf(object));
      },
      ended: (isClean) => this.#ended(isClean),
    });
  }

  #heard(count: number): void {
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
