import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  hasRoom,
  invariants,
  isMerging,
  next,
  violated,
  type WatchFacts,
  type WatchState,
  watchInputs,
  watchStates,
} from "../../../src/watch/session/watch-state.ts";

const test = suite("watch-state");

/** The transitions again, one row per state, as `input→state`. Those that are not listed are impossible. */
const rows: Record<WatchState, string> = {
  streaming:
    "hedge→hedged compare→sentinel refresh→refreshing migrate→migrating lose→parked end→ending cancel→ended",
  hedged: "compare→sentinel promote→streaming drop→streaming lose→resuming end→ending cancel→ended",
  sentinel: "hedge→hedged promote→streaming drop→streaming lose→resuming end→ending cancel→ended",
  refreshing: "promote→streaming drop→streaming end→ending cancel→ended",
  migrating: "promote→streaming drop→streaming lose→resuming end→ending cancel→ended",
  resuming: "promote→streaming drop→parked end→ending cancel→ended",
  parked: "ask→resuming end→ending cancel→ended",
  ending: "lose→ending end→ending cancel→ended",
  ended: "",
};

for (const state of watchStates)
  test(`what may follow ${state}`, () => {
    const possible = watchInputs.flatMap((input) => {
      const to = next(state, input);
      return to === undefined ? [] : [`${input}→${to}`];
    });
    assert.is(possible.join(" "), rows[state]);
  });

test("a second stream may be asked for beside a first, a bookmark's and a sentinel's", () => {
  assert.equal(watchStates.filter(hasRoom), ["streaming", "sentinel", "refreshing"]);
  assert.equal(watchStates.filter(isMerging), ["hedged", "refreshing", "migrating"]);
});

const idle = { isPosted: false, isWaiting: false, heldBytes: 0 };
/** Facts without a violation, one set for each state. */
const sound: Record<WatchState, WatchFacts> = {
  streaming: { ...idle, state: "streaming", first: "answered", second: "none" },
  hedged: { ...idle, state: "hedged", first: "answered", second: "asked" },
  sentinel: { ...idle, state: "sentinel", first: "answered", second: "answered", isPosted: true },
  refreshing: { ...idle, state: "refreshing", first: "answered", second: "answered" },
  migrating: { ...idle, state: "migrating", first: "answered", second: "asked", heldBytes: 7 },
  resuming: { ...idle, state: "resuming", first: "none", second: "asked", isWaiting: true },
  parked: { ...idle, state: "parked", first: "none", second: "none", isWaiting: true },
  ending: { ...idle, state: "ending", first: "answered", second: "none", isWaiting: true },
  ended: { ...idle, state: "ended", first: "none", second: "none" },
};

test("the invariants hold in every state", () => {
  for (const state of watchStates) assert.is(violated(sound[state]), undefined);
});

/** Facts that violate one invariant each, in the order of the invariants. */
const planted: readonly WatchFacts[] = [
  { ...sound.streaming, first: "asked" },
  { ...sound.parked, first: "answered" },
  { ...sound.streaming, second: "asked" },
  { ...sound.resuming, second: "answered" },
  { ...sound.migrating, isPosted: true },
  { ...sound.parked, isWaiting: false },
  { ...sound.ended, heldBytes: 1 },
];

for (const [at, { says }] of invariants.entries())
  test(`a violation is found: ${says}`, () => {
    const facts = planted[at];
    if (facts === undefined) throw new Error("Each invariant has a violation here");
    assert.is(violated(facts), says);
  });

test("more violations are found: no second stream, a sentinel that was not posted, a stream of a session that is over", () => {
  const says = invariants.map((one) => one.says);
  assert.is(violated({ ...sound.hedged, second: "none" }), says[2]);
  assert.is(violated({ ...sound.sentinel, isPosted: false }), says[4]);
  assert.is(violated({ ...sound.resuming, isWaiting: false }), says[5]);
  assert.is(violated({ ...sound.ended, first: "answered" }), says[6]);
});

test.run();
