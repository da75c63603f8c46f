/**
 * Injects faults: cuts off, freezes or restarts the apiserver that has the most watches at that time. Two identical
 * clients measure the effects, one through watchkeeper and one through a naive proxy.
 */
import type { Clock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import type { Entry, Journal } from "../../src/events/journal.ts";
import type { Embedded, FaultKind } from "../apiserver/embedded.ts";
import { Pause } from "./pause.ts";
import type { Seen, SteadyClient } from "./steady-client.ts";

const names = { watchkeeper: "watchkeeper", naive: "naive proxy" };
/** Pause before the first fault in milliseconds. Meanwhile, watchkeeper measures round-trip times. */
const warmMs = 1_000;
/**
 * Milliseconds within which a backend must become ready after its fault is repaired. Otherwise `play` returns a
 * Failure.
 */
const returnMs = 20_000;
/** Pause after each fault in milliseconds. Meanwhile, delayed responses arrive and backends' states change. */
const calmMs = 500;
const lookMs = 20;

const deeds: Record<FaultKind, { readonly begins: string; readonly heals: string }> = {
  hole: {
    begins: "falls into a black hole: nothing gets through, either way",
    heals: "comes out of the hole",
  },
  freeze: { begins: "freezes (SIGSTOP): its kernel still acknowledges", heals: "goes on (SIGCONT)" },
  restart: { begins: "is killed (SIGKILL)", heals: "serves again, on the same port" },
};

export type FaultsParts = {
  readonly apiservers: readonly Embedded[];
  readonly journal: Journal;
  readonly clients: { readonly watchkeeper: SteadyClient; readonly naive: SteadyClient };
  readonly clock: Clock;
  readonly say: (line: string) => void;
  readonly faultMs: number;
};

export class Faults {
  readonly #parts: FaultsParts;
  readonly #verdicts = new Map<string, string>();
  readonly #forget: () => void;
  #begunAt = 0;
  #felt: Failure | undefined;
  #isOver = false;
  readonly #pause: Pause;

  constructor(parts: FaultsParts) {
    this.#parts = parts;
    this.#pause = new Pause(parts.clock);
    this.#forget = parts.journal.subscribe((entry) => this.#onEntry(entry));
  }

  /**
   * Injects the faults in this order. Returns a Failure if a fault affected watchkeeper's client or could not be
   * repaired.
   */
  async play(faults: readonly FaultKind[]): Promise<Failure | undefined> {
    const { clients } = this.#parts;
    await Promise.all([clients.watchkeeper.start(), clients.naive.start()]);
    await this.#pause.of(warmMs);
    for (const fault of faults) {
      if (this.#isOver) return undefined;
      const failure = await this.#one(fault);
      if (failure !== undefined) return failure;
    }
    return this.#felt;
  }

  naiveChanged(backend: string, isUp: boolean, reason: string): void {
    this.#report(names.naive, `${backend} is ${isUp ? "up" : "down"}: ${reason}`);
  }

  end(): void {
    this.#isOver = true;
    this.#forget();
    this.#pause.wake();
  }

  async #one(fault: FaultKind): Promise<Failure | undefined> {
    const { clients, clock, faultMs, say } = this.#parts;
    const victim = this.#busiest();
    if (victim === undefined) return undefined;
    say("");
    for (const client of Object.values(clients)) client.reset();
    this.#begunAt = clock.now();
    this.#report(victim.name, deeds[fault].begins);
    await victim.strike(fault);
    await this.#pause.of(faultMs);
    const failure = await victim.heal(fault);
    if (failure !== undefined) return failure;
    this.#report(victim.name, deeds[fault].heals);
    const isSettled = await this.#settle(victim.name);
    return isSettled ? this.#sumUp(victim.name) : undefined;
  }

  /**
   * Waits until the backend is ready and every request has been answered or has timed out, but no longer than
   * `returnMs`. Returns false if `end` was called meanwhile. Otherwise returns true, even if `returnMs` has elapsed.
   */
  async #settle(victim: string): Promise<boolean> {
    const { clients, clock } = this.#parts;
    const until = clock.now() + returnMs;
    const isSettled = (): boolean =>
      this.#isReady(victim) && clients.watchkeeper.waiting + clients.naive.waiting === 0;
    await this.#pause.of(calmMs);
    while (!this.#isOver && !isSettled() && clock.now() < until) await this.#pause.of(lookMs);
    return !this.#isOver;
  }

  #sumUp(victim: string): Failure | undefined {
    const { clients, say } = this.#parts;
    const seen = clients.watchkeeper.seen();
    say(row("its clients saw", titles));
    say(row("  through watchkeeper", cellsOf(seen)));
    say(row("  through the naive proxy", cellsOf(clients.naive.seen())));
    if (!this.#isReady(victim))
      return new Failure("no-backend", "proxy", `${victim} did not recover within ${returnMs / 1_000} s`);
    // The Failure is returned only after all faults have been injected, because the results of later faults are still
    // valid.
    if (seen.failedGets + seen.wrongEvents > 0)
      this.#felt ??= new Failure("backend-lost", "proxy", `Watchkeeper's client was affected by ${victim}`);
    return undefined;
  }

  #isReady(backend: string): boolean {
    return (this.#verdicts.get(backend) ?? "ready") === "ready";
  }

  #busiest(): Embedded | undefined {
    return this.#parts.apiservers.toSorted((a, b) => b.watchCount - a.watchCount)[0];
  }

  #onEntry(entry: Entry): void {
    if (entry.kind !== "backend.changed") return;
    this.#verdicts.set(entry.backend, entry.to);
    this.#report(names.watchkeeper, `${entry.backend} is ${entry.to}: ${entry.reason}`);
  }

  #report(who: string, what: string): void {
    if (this.#begunAt === 0 || this.#isOver) return;
    const s = (this.#parts.clock.now() - this.#begunAt) / 1_000;
    this.#parts.say(`${s.toFixed(2).padStart(7)} s  ${who.padEnd(names.watchkeeper.length)}  ${what}`);
  }
}

const titles = ["GETs failed", "slowest", "watches hung", "latest event", "ended", "relisted", "amiss"];

/**
 * Returns a row of the table whose headings are `titles`. "watches hung" counts watches with an event that was more
 * than a second late. "amiss" counts events that were skipped or repeated.
 */
function cellsOf(seen: Seen): string[] {
  return [
    `${seen.failedGets} of ${seen.gets}`,
    inSeconds(seen.slowestGetMs),
    `${seen.hung} of ${seen.watches}`,
    inSeconds(seen.latestEventMs),
    String(seen.ends),
    String(seen.relists),
    String(seen.wrongEvents),
  ];
}

function row(name: string, cells: readonly string[]): string {
  const aligned = cells.map((cell, at) => cell.padStart(titles[at]?.length ?? 0));
  return `   ${name.padEnd(25)}${aligned.join("  ")}`;
}

function inSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}
