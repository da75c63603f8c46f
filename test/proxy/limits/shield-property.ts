/** Random requests and events at the shield of one backend, and what must always hold. */
import * as fc from "fast-check";
import * as assert from "uvu/assert";
import { shieldLimits } from "../../../src/proxy/limits/limits.ts";
import type { ShieldPlace } from "../../../src/proxy/limits/shield.ts";
import { Shields } from "../../../src/proxy/limits/shields.ts";
import { manualClock } from "../../support/clock.ts";

const { leastCap, lookMs, mostCap, placeMs } = shieldLimits;
const shield = { isEnabled: true, queueMs: 15_000, exemptGroups: ["system:masters"] };

/** Returns shields whose backend "a" has just started. */
export function shieldsAt(clock: ReturnType<typeof manualClock>): Shields {
  const loads = { of: () => undefined, slowness: () => 1 };
  const shields = new Shields({ clock, loads }, shield);
  shields.reconcile(["a", "b"]);
  shields.judged({ name: "a", state: "dead" });
  shields.returned("a");
  return shields;
}

type Asking = {
  readonly user: string;
  readonly since: number;
  /** True if its user had no other request, waiting or admitted, when the request began to wait. */
  readonly isOnly: boolean;
  /** Number of other users whose requests waited when the request began to wait. */
  readonly usersBefore: number;
  place?: ShieldPlace;
  state: "waiting" | "placed" | "refused" | "over";
  /** Number of other waiting requests that were admitted while the request waited. */
  overtakenBy: number;
};

/** A shielded backend with all requests for it. */
class Scene {
  readonly clock = manualClock();
  readonly shields = shieldsAt(this.clock);
  readonly sum: ShieldSum = { admitted: 0, refused: 0 };
  #open: Asking[] = [];
  /** Reasons why a user with one request has starved. */
  readonly starved: string[] = [];

  get waiting(): readonly Asking[] {
    return this.#open.filter(({ state }) => state === "waiting");
  }

  /** The requests that wait or are admitted, in the order in which they arrived. */
  get open(): readonly Asking[] {
    this.#open = this.#open.filter(
      ({ state, place }) => state === "waiting" || (state === "placed" && place?.state === "placed"),
    );
    return this.#open;
  }

  get admitted(): readonly Asking[] {
    return this.open.filter(({ state }) => state === "placed");
  }

  ask(user: string): void {
    const { open } = this;
    const users = new Set(open.filter(({ state }) => state === "waiting").map((one) => one.user));
    users.delete(user);
    const asking: Asking = {
      user,
      since: this.clock.now(),
      isOnly: open.every((one) => one.user !== user),
      usersBefore: users.size,
      state: "waiting",
      overtakenBy: 0,
    };
    this.#open.push(asking);
    const place = this.shields.enter("a", {
      user,
      kind: "pods",
      isListing: () => true,
      place: () => this.#placed(asking),
      refuse: () => {
        asking.state = "refused";
        this.sum.refused += 1;
      },
    });
    if (place === "free") asking.state = "over";
    else if (place === undefined) asking.state = "refused";
    else {
      asking.place = place;
      if (place.state === "placed") asking.state = "placed";
    }
  }

  #placed(asking: Asking): void {
    asking.state = asking.place?.state === "placed" ? "placed" : "over";
    if (asking.state === "over") return;
    this.sum.admitted += 1;
    for (const other of this.waiting) {
      other.overtakenBy += 1;
      if (other.isOnly && other.overtakenBy > other.usersBefore)
        this.starved.push(
          `${other.user}: ${other.overtakenBy} were before it, of ${other.usersBefore} users`,
        );
    }
  }

  answer(asking: Asking | undefined, status: number, ms: number): void {
    if (asking?.place === undefined) return;
    this.shields.answered(asking.place, status, ms);
    this.leave(asking);
  }

  leave(asking: Asking | undefined): void {
    if (asking?.place === undefined) return;
    this.shields.leave(asking.place);
    asking.state = "over";
  }

  play({ kind, user, ms }: Action): void {
    const { shields } = this;
    if (kind === "ask") this.ask(`u${user}`);
    else if (kind === "flood") for (let count = 0; count < 50; count += 1) this.ask("attacker");
    else if (kind === "leave") this.leave(this.open[user]);
    else if (kind === "answer") this.answer(this.admitted[0], 200, 10);
    else if (kind === "slow") this.answer(this.admitted[0], 200, 1000);
    else if (kind === "refused") this.answer(this.admitted[0], 429, 10);
    else if (kind === "die") shields.judged({ name: "a", state: "dead" });
    else if (kind === "return") shields.returned("a");
    else this.clock.advance(ms);
    this.clock.turn();
  }

  check(): void {
    const cap = this.shields.of("a")?.cap ?? 0;
    assert.ok(cap >= leastCap && cap <= mostCap, `cap ${cap}`);
    const oldest = Math.max(0, ...this.waiting.map(({ since }) => this.clock.now() - since));
    assert.ok(oldest <= shield.queueMs + 2 * lookMs, "no one waits for longer");
    assert.equal(this.starved, []);
  }

  checkEnd(): void {
    this.clock.advance(shield.queueMs + placeMs + 1000);
    assert.equal(this.waiting, [], "every request has ended its wait");
    const one = this.shields.of("a");
    assert.equal([one?.waiting, one?.placed, one?.users], [0, 0, 0]);
  }
}

const kinds = ["ask", "ask", "flood", "leave", "answer", "slow", "refused", "wait", "die", "return"] as const;
type Action = { readonly kind: (typeof kinds)[number]; readonly user: number; readonly ms: number };

/** With fast-check's default size, no run would have more than ten actions. */
const size = "max";

const action = fc.record({
  kind: fc.constantFrom(...kinds),
  user: fc.integer({ min: 0, max: 6 }),
  ms: fc.integer({ min: 0, max: 2000 }),
});

/** Numbers of requests that waited and then were admitted or refused. */
export type ShieldSum = { admitted: number; refused: number };

/**
 * Plays random actions `runs` times. Throws if a request neither gets a place nor a refusal in time, if the cap leaves
 * its limits, or if a user with one request starves: while the request waits, each other user that waits may be
 * admitted once before it. The error names the seed and the path with which fast-check repeats the run.
 */
export function playShields(runs: number, seed?: number): ShieldSum {
  const sum: ShieldSum = { admitted: 0, refused: 0 };
  fc.assert(
    fc.property(fc.array(action, { maxLength: 120, size }), (actions) => {
      const scene = new Scene();
      for (const one of actions) {
        scene.play(one);
        scene.check();
      }
      scene.checkEnd();
      sum.admitted += scene.sum.admitted;
      sum.refused += scene.sum.refused;
    }),
    seed === undefined ? { numRuns: runs } : { numRuns: runs, seed },
  );
  return sum;
}
