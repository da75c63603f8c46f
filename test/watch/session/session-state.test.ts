/**
 * The reported state of a watch session, and how a session ends. watch-state.test.ts tests the table of transitions.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { decodersOf } from "../../../src/watch/codec/framing.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { type HedgeOutcome, hedgeOutcomes } from "../../../src/watch/session/watch-lives.ts";
import type { WatchSession } from "../../../src/watch/session/watch-session.ts";
import { blackHole, hold, PlayedWatch } from "../../support/watch-path.ts";

const test = suite("watch-session: its state");

/** Returns the session of the only watch. */
function sessionOf(watch: PlayedWatch): WatchSession {
  const [exchange] = watch.path.exchanges.live;
  if (exchange?.watch === undefined) throw new Error("It is answered");
  return exchange.watch;
}

test("its state is told with its backends, why, and how far it has come", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  const session = sessionOf(watch);
  assert.is(String(session), "streaming at a, live at 8");
  blackHole(watch.from);
  watch.advance(750);
  assert.is(String(session), "hedged at a and b (suspect), live at 8");
  watch.kill(watch.from);
  assert.is(String(session), "resuming at b (suspect at a), live at 8");
  watch.kill(watch.to);
  assert.is(String(session), "parked (suspect at a), live at 8");
  session.cancel();
  assert.is(String(session), "ended (suspect at a), live at 8");
});

/** Opens a watch at `a` with a hedge at `b`. The returned function lets the data of `a` pass again. */
function hedged(): { readonly watch: PlayedWatch; readonly release: () => void } {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.advance(watchLimits.shortWatchMs);
  const release = hold(watch.from);
  watch.advance(750);
  assert.is(sessionOf(watch).state, "hedged");
  return { watch, release };
}

const outcomes: readonly (readonly [
  what: string,
  end: (hedge: ReturnType<typeof hedged>) => void,
  HedgeOutcome,
])[] = [
  ["the first stream answers again", ({ release }) => release(), "first"],
  ["the second stream fails", ({ watch }) => watch.kill(watch.to), "first"],
  [
    "the first stream is lost after the second was accepted",
    ({ watch }) => {
      watch.serve(watch.to);
      watch.kill(watch.from);
    },
    "hedge",
  ],
  [
    "the first stream is lost before the second is accepted",
    ({ watch }) => {
      watch.kill(watch.from);
      watch.serve(watch.to);
    },
    "hedge",
  ],
  [
    "both streams are lost",
    ({ watch }) => {
      watch.kill(watch.from);
      watch.kill(watch.to);
    },
    "neither",
  ],
  ["the client leaves", ({ watch }) => sessionOf(watch).cancel(), "neither"],
];

for (const [what, end, outcome] of outcomes)
  test(`a hedge is counted once, at the silent backend, when it ends: ${what}`, () => {
    const hedge = hedged();
    const { hedges } = hedge.watch.path.migrations.lives;
    const counted = (backend: string): unknown =>
      hedgeOutcomes.map((key) => ({ backend, key, count: key === outcome ? 1 : 0 }));
    assert.equal(hedges.all, []);
    end(hedge);
    hedge.watch.path.settle();
    assert.equal(hedges.all, counted("a"));
    hedge.watch.path.reconcile(["b"]);
    hedge.watch.path.reconcile(["b"]);
    assert.equal(hedges.all, counted("other"));
  });

test("an input that is impossible is a fault of the proxy: it is journaled, and the watch ends between two events", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.advance(watchLimits.shortWatchMs);
  const session = sessionOf(watch);
  assert.is(session.ask("b", "draining")?.backend, "b");
  assert.is(session.ask("b", "suspect"), undefined);
  watch.path.settle();
  watch.has("+8a", "ended");
  assert.is(session.state, "ended");
  assert.equal(
    watch.entries("internal.error").map(({ message }) => message),
    ['A watch took "hedge", which is impossible: migrating at a and b (draining), live at 8'],
  );
});

test("the invariants are checked on the session itself", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  const session = sessionOf(watch);
  blackHole(watch.from);
  watch.advance(750);
  watch.kill(watch.from);
  assert.is(session.check(), undefined);
  session.second?.accept(decodersOf("application/json", "", false), 0);
  const broken = "a stream that is answered while there is no other is the first";
  assert.is(session.check(), `resuming at b (suspect at a), live at 8: ${broken}`);
});

test("an end comes when the watch is 1.1 s old, and once, for the reason that came first", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from);
  const session = sessionOf(watch);
  watch.advance(100);
  session.finish();
  assert.is(session.state, "ending");
  session.finish();
  watch.advance(watchLimits.shortWatchMs - 150);
  watch.has("");
  assert.equal([...watch.path.migrations.ends], [], "it is counted when it comes");
  watch.advance(51);
  watch.has("", "ended");
  assert.equal([...watch.path.migrations.ends], [["drained", 1]]);
});

test("an older one ends at once, and a second stream with it", () => {
  const watch = new PlayedWatch();
  watch.serve(watch.from, "+8a");
  watch.advance(watchLimits.shortWatchMs);
  blackHole(watch.from);
  watch.advance(750);
  const session = sessionOf(watch);
  assert.is(session.state, "hedged");
  session.finish();
  watch.path.settle();
  watch.has("+8a", "ended");
  assert.equal([session.state, session.check()], ["ended", undefined]);
  assert.is(watch.to.asked[0]?.resetCode, errorCode.CANCEL);
});

test.run();
