/** The demo's client: writes and watches a ConfigMap through the proxy. Prints the delay of each event. */
import type { Clock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import { type Json, mapOf, textOf } from "../objects/json.ts";
import type { DemoClient } from "./client.ts";
import { Pause } from "./pause.ts";

const configmaps = "/api/v1/namespaces/default/configmaps";
/** Number of writes for which a line is printed. After these writes, one line is printed every `summaryMs`. */
const printedWrites = 5;
const writeMs = 250;
const calmWriteMs = 2_000;
const summaryMs = 30_000;
const missingAfterMs = 5_000;

export type StoryParts = {
  readonly client: DemoClient;
  readonly clock: Clock;
  readonly say: (line: string) => void;
};

export class Story {
  readonly #parts: StoryParts;
  /**
   * Clock reading (ms) at which each write was sent, keyed by the number of the write. An entry is removed when the
   * write's event arrives.
   */
  readonly #sentAt = new Map<string, number>();
  #count = 0;
  #version = "";
  #slowestMs = 0;
  #events = 0;
  #reopened = 0;
  #isOver = false;
  readonly #pause: Pause;

  constructor(parts: StoryParts) {
    this.#parts = parts;
    this.#pause = new Pause(parts.clock);
  }

  /**
   * Makes the first writes, and prints a line for each. Returns a Failure if the list or a write fails, or if an event
   * does not arrive.
   */
  async begin(): Promise<Failure | undefined> {
    const list = await this.#parts.client.read(`GET ${configmaps}`);
    if (list.status === 0) return new Failure("backend-lost", "proxy", list.problem);
    this.#version = textOf(mapOf(mapOf(list.body)["metadata"])["resourceVersion"]);
    this.#parts.say(`  list    ${list.status}, at version ${this.#version}`);
    this.#watch();
    for (let count = 0; count < printedWrites; count += 1) {
      const failure = await this.#write();
      if (failure !== undefined) return failure;
      await this.#pause.of(writeMs);
    }
    return this.#settle();
  }

  /** Continues to write and watch until `end`. Prints a line every `summaryMs`. */
  async goOn(): Promise<void> {
    let printedAt = this.#parts.clock.now();
    for (;;) {
      await this.#pause.of(calmWriteMs);
      if (this.#isOver) return;
      const failure = await this.#write();
      if (failure !== undefined) this.#parts.say(`  write   failed: ${failure.message}`);
      if (this.#parts.clock.now() - printedAt < summaryMs) continue;
      printedAt = this.#parts.clock.now();
      this.#parts.say(`  so far  ${this.#summary()}`);
    }
  }

  end(): void {
    this.#isOver = true;
    this.#pause.wake();
  }

  #summary(): string {
    const again = this.#reopened === 0 ? "" : `, the watch asked again ${this.#reopened} times`;
    return `${this.#count} writes, ${this.#events} events, slowest ${shown(this.#slowestMs)}${again}`;
  }

  async #write(): Promise<Failure | undefined> {
    const { client, clock } = this.#parts;
    this.#count += 1;
    const count = String(this.#count);
    this.#sentAt.set(count, clock.now());
    // Sends a server-side apply, which creates the object or changes it.
    const { status, problem } = await client.read(
      `PATCH ${configmaps}/ticker?fieldManager=watchkeeper-demo`,
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "ticker" }, data: { count } },
      "application/apply-patch+yaml",
    );
    if (status === 0) return new Failure("backend-lost", "proxy", problem);
    if (status < 300) return undefined;
    return new Failure("backend-refused", "backend", `The write was answered with ${status}`);
  }

  #watch(): void {
    const path = `${configmaps}?watch=true&allowWatchBookmarks=true&resourceVersion=${this.#version}`;
    void this.#parts.client.watch(path, {
      event: (event) => this.#onEvent(event),
      ended: () => {
        if (this.#isOver || !this.#parts.client.isOpen) return;
        this.#reopened += 1;
        this.#watch();
      },
    });
  }

  #onEvent(event: Json): void {
    const { type, object } = mapOf(event);
    const { metadata, data } = mapOf(object);
    this.#version = textOf(mapOf(metadata)["resourceVersion"]) || this.#version;
    const count = textOf(mapOf(data)["count"]);
    const sentAt = this.#sentAt.get(count);
    if (sentAt === undefined || textOf(mapOf(metadata)["name"]) !== "ticker") return;
    this.#sentAt.delete(count);
    this.#events += 1;
    const tookMs = this.#parts.clock.now() - sentAt;
    this.#slowestMs = Math.max(this.#slowestMs, tookMs);
    if (this.#events > printedWrites) return;
    const kind = textOf(type).padEnd(8);
    this.#parts.say(
      `  watch   ${kind} configmap/ticker, version ${this.#version}, ${shown(tookMs)} after its write`,
    );
  }

  /**
   * Waits up to `missingAfterMs` for all events that are still missing, then prints a summary. Returns a Failure if
   * some events did not arrive.
   */
  async #settle(): Promise<Failure | undefined> {
    const { clock, say } = this.#parts;
    const until = clock.now() + missingAfterMs;
    while (this.#sentAt.size > 0 && clock.now() < until) await this.#pause.of(10);
    say(`  so far  ${this.#summary()}`);
    if (this.#sentAt.size === 0) return undefined;
    return new Failure("backend-lost", "proxy", `${this.#sentAt.size} events did not come`);
  }
}

function shown(ms: number): string {
  return `${ms.toFixed(1)} ms`;
}
