/** Watchers other than reflectors. Each kind reacts to the end of its watch in its own way (watch.md §7). */
import { Backoff } from "./backoff.ts";
import type { Caller } from "./caller.ts";
import type { Beginning } from "./truth.ts";
import { type Company, WatchCall, type WatchEnd, type WatchOrder } from "./watch-call.ts";

/**
 * "exits" is `kubectl get -w`, which exits at any end of its watch. "retries" is `RetryWatcher`, which resumes from its
 * last version until a 401, 403 or 410.
 */
export type Habit = "exits" | "retries";

const retryMs = 1_000;

export class OtherWatcher {
  readonly #caller: Caller;
  readonly #company: Company;
  readonly #order: WatchOrder;
  readonly #habit: Habit;
  readonly #backoff: Backoff;
  #call: WatchCall | undefined;
  #version: number | undefined;
  isOver = false;
  /** Clock reading at which the watcher ends its own backoff. */
  waitsUntil = 0;

  constructor(caller: Caller, company: Company, order: WatchOrder, habit: Habit) {
    this.#caller = caller;
    this.#company = company;
    this.#order = order;
    this.#habit = habit;
    this.#backoff = new Backoff(caller.findings);
    this.#version = order.beginning.from === "version" ? order.beginning.version : undefined;
  }

  get name(): string {
    return this.#caller.name;
  }

  get call(): WatchCall | undefined {
    return this.#call;
  }

  start(): void {
    if (this.isOver) return;
    const beginning: Beginning =
      this.#version === undefined ? this.#order.beginning : { from: "version", version: this.#version };
    this.#call = new WatchCall(
      this.#caller,
      this.#company,
      { ...this.#order, beginning },
      {
        event: (event) => {
          if (this.#call?.follower.phase === "live") this.#version = event.version;
        },
        over: (_call, end) => this.#over(end),
      },
    );
  }

  stop(): void {
    this.isOver = true;
    this.#call?.cancel();
  }

  #over(end: WatchEnd): void {
    this.#call = undefined;
    const code = end.kind === "error" ? end.code : end.kind === "refused" ? end.status : 0;
    if (this.#habit === "exits" || [401, 403, 410].includes(code)) {
      this.#caller.findings.count(`gave up: ${this.#habit} ${end.kind}${code === 0 ? "" : ` ${code}`}`);
      this.isOver = true;
      return;
    }
    const ms = end.kind === "refused" ? (end.retryAfterMs ?? this.#backoff.nextMs()) : retryMs;
    this.waitsUntil = this.#caller.findings.world.now() + ms;
    this.#caller.findings.world.after(ms, () => this.start());
  }
}
