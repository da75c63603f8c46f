/**
 * One watch that stays open for the whole soak, through every fault and reload. It reopens its stream only if the
 * stream was ended, and checks that it receives the numbered events of the beat (a periodic write) without a gap.
 */

import { mapOf, textOf } from "../../demo/objects/json.ts";
import { Beat, beatOf } from "../../demo/story/beat.ts";
import type { DemoClient } from "../../demo/story/client.ts";
import { wallClock } from "../../src/base/clock.ts";

export class Elder {
  readonly #connect: () => DemoClient;
  #client: DemoClient;
  #version = "";
  #last = 0;
  #isOver = false;
  #cancel = (): void => {};
  events = 0;
  /**
   * `wrong` counts events that were missing or came twice. `ends` counts orderly ends of the watch, `broken` all other
   * ends.
   */
  wrong = 0;
  ends = 0;
  broken = 0;
  /** Called each time the watch ends. */
  readonly #onEnd: (how: string) => void;

  constructor(connect: () => DemoClient, onEnd: (how: string) => void) {
    this.#onEnd = onEnd;
    this.#connect = connect;
    this.#client = connect();
  }

  /** Starts the watch. Counting starts at the number in its first event. */
  start(): void {
    this.#watch();
  }

  stop(): void {
    this.#isOver = true;
    this.#cancel();
    this.#client.close();
  }

  get said(): string {
    return `${this.events} events, ${this.wrong} wrong, ended ${this.ends} times, broke off ${this.broken} times`;
  }

  #watch(): void {
    if (!this.#client.isOpen) this.#client = this.#connect();
    const from = this.#version === "" ? "" : `&resourceVersion=${this.#version}`;
    void this.#client.watch(`${Beat.path}?watch=true&allowWatchBookmarks=true${from}`, {
      event: (event) => {
        const { object } = mapOf(event);
        this.#version = textOf(mapOf(mapOf(object)["metadata"])["resourceVersion"]) || this.#version;
        this.#heard(beatOf(object));
      },
      ended: (isClean) => this.#over(isClean),
    });
  }

  #heard(at: number): void {
    if (at === 0) return;
    if (this.#last !== 0 && at !== this.#last + 1) this.wrong += 1;
    this.#last = at;
    this.events += 1;
  }

  #over(isClean: boolean): void {
    if (this.#isOver) return;
    if (isClean) this.ends += 1;
    else this.broken += 1;
    this.#onEnd(isClean ? "ended" : this.#client.isOpen ? "was reset or refused" : "lost its session");
    this.#cancel = wallClock.after(500, () => this.#watch());
  }
}
