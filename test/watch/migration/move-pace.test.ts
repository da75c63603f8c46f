import { suite } from "uvu";
import * as assert from "uvu/assert";
import { watchLimits } from "../../../src/watch/limits.ts";
import { MovePace } from "../../../src/watch/migration/move-pace.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("watch/migration/move-pace");
const { moveWindow } = watchLimits;

/**
 * A backend that accepts up to `perMs` watches in each ms, in the order of their requests, and each one after
 * `leastMs` at the earliest. `play` moves as many watches as the pace allows.
 */
class PlayedMoves {
  readonly clock = manualClock();
  readonly pace = new MovePace(this.clock);
  perMs: number;
  readonly #leastMs: number;
  readonly #sentAt: number[] = [];
  #credit = 0;
  moved = 0;
  /** The most ms that a request waited for the backend to become free. */
  longestMs = 0;

  constructor(perMs: number, leastMs: number) {
    this.perMs = perMs;
    this.#leastMs = leastMs;
  }

  play(ms: number): void {
    for (let tick = 0; tick < ms; tick += 1) {
      this.clock.advance(1);
      this.#answer();
      while (this.pace.take(2)) {
        this.pace.asked("a");
        this.#sentAt.push(this.clock.now());
      }
    }
  }

  #answer(): void {
    this.#credit = Math.min(this.#credit, 0) + this.perMs;
    for (let [sentAt] = this.#sentAt; sentAt !== undefined && this.#credit >= 1; [sentAt] = this.#sentAt) {
      const tookMs = this.clock.now() - sentAt;
      if (tookMs < this.#leastMs) return;
      this.#sentAt.shift();
      this.#credit -= 1;
      this.moved += 1;
      this.longestMs = Math.max(this.longestMs, tookMs - this.#leastMs);
      this.pace.accepted("a", tookMs);
    }
  }
}

test("while a backend accepts watches at once, the window grows: 25,000 watches move in 8 s", () => {
  const moves = new PlayedMoves(50, 1);
  moves.play(8000);
  assert.ok(moves.moved >= 25_000, String(moves.moved));
});

test("an apiserver that can accept 1,000 watches a second gets nearly as many, and no queue of them", () => {
  const moves = new PlayedMoves(1, 1);
  moves.play(8000);
  assert.ok(moves.moved > 7000, String(moves.moved));
  assert.ok(moves.longestMs < 25, `${moves.longestMs} ms`);
});

test("a backend that takes 50 ms for each watch gets more and more of them, because they do not delay each other", () => {
  const moves = new PlayedMoves(50, 50);
  moves.play(8000);
  assert.ok(moves.pace.state.window > 0.9 * moveWindow.most, JSON.stringify(moves.pace.state));
  assert.ok(moves.moved > 8000, String(moves.moved));
});

test("an apiserver that becomes slower gets fewer watches at the same time", () => {
  const moves = new PlayedMoves(5, 20);
  moves.play(4000);
  const { window } = moves.pace.state;
  assert.ok(window > 50, String(window));
  moves.perMs = 1;
  moves.play(1000);
  moves.longestMs = 0;
  moves.play(1000);
  assert.ok(moves.pace.state.window < window / 2, JSON.stringify(moves.pace.state));
  assert.ok(moves.longestMs < 25, `${moves.longestMs} ms`);
});

test("a backend that always takes 9 ms longer than another one does not make the moves slow", () => {
  const clock = manualClock();
  const pace = new MovePace(clock);
  const accepts = { near: 1, far: 10 };
  let count = 0;
  for (let tick = 0; tick < 5000; tick += 1) {
    clock.advance(1);
    while (pace.take(2)) {
      const backend = count % 2 === 0 ? "near" : "far";
      const ms = accepts[backend];
      count += 1;
      pace.asked(backend);
      clock.after(ms, () => pace.accepted(backend, ms));
    }
  }
  assert.ok(count > 12_500, String(count));
});

test("one acceptance that seemed to take no time slows the moves down for 10 s at most", () => {
  const moves = new PlayedMoves(50, 10);
  moves.pace.asked("a");
  moves.pace.accepted("a", 0);
  moves.play(moveWindow.renewMs);
  moves.moved = 0;
  moves.play(5000);
  assert.ok(moves.moved > 12_500, String(moves.moved));
});

test("while moves last for minutes, an apiserver that can accept 1,000 watches a second gets no queue of them", () => {
  const moves = new PlayedMoves(1, 1);
  moves.play(120_000);
  assert.ok(moves.moved > 0.8 * 120_000, String(moves.moved));
  assert.ok(moves.longestMs < 25, `${moves.longestMs} ms`);
});

test("while nothing is answered, a few watches still move, and given-up requests make room", () => {
  const moves = new PlayedMoves(0, 1);
  moves.play(1000);
  const { unanswered } = moves.pace.state;
  assert.ok(
    unanswered >= moveWindow.beyondPerSecond &&
      unanswered <= moveWindow.beyondPerSecond + moveWindow.beyondBurst + moveWindow.initial,
    String(unanswered),
  );
  for (let count = 0; count < unanswered; count += 1) moves.pace.settled("a");
  assert.is(moves.pace.state.unanswered, 0);
  for (let count = 0; count < moveWindow.initial; count += 1) {
    assert.ok(moves.pace.take(2));
    moves.pace.asked("a");
  }
});

test("the window begins anew after a while", () => {
  const moves = new PlayedMoves(50, 1);
  moves.play(2000);
  assert.ok(moves.pace.state.window > 2 * moveWindow.initial, JSON.stringify(moves.pace.state));
  moves.clock.advance(moveWindow.renewMs);
  assert.ok(moves.pace.isOpen(2));
  assert.is(moves.pace.state.window, moveWindow.initial);
});

test("a 429 halves the rate, which comes back within ten seconds", () => {
  const clock = manualClock();
  const pace = new MovePace(clock);
  pace.slowDown();
  assert.ok(
    Math.abs(pace.state.perSecond - watchLimits.movesPerSecond / 2) < 1,
    String(pace.state.perSecond),
  );
  for (let count = 0; count < 100; count += 1) pace.slowDown();
  assert.is(Math.round(pace.state.perSecond), watchLimits.movesPerSecondLeast);
  clock.advance(10_000);
  assert.ok(pace.isOpen(2));
  assert.is(Math.round(pace.state.perSecond), watchLimits.movesPerSecond);
});

test("watches of the control plane have a pace of their own, which is limited as well", () => {
  const pace = new MovePace(manualClock());
  while (pace.take(2)) pace.asked("a");
  while (pace.take(1)) pace.asked("a");
  let count = 0;
  while (pace.take(0)) count += 1;
  assert.is(count, watchLimits.firstMoveBurst);
});

test.run();
