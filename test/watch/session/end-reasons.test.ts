import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Ending } from "../../../src/watch/session/end-verdict.ts";
import { endReason, moveReason } from "../../../src/watch/session/end-verdict.ts";

const test = suite("ending: reasons");

const live: Ending = {
  over: "broken",
  phase: "live",
  start: "exact",
  isResumable: false,
  ageMs: 0,
  leftMs: undefined,
  isBlocked: false,
  isDraining: false,
  isOurs: false,
  isRepeated: false,
  liveEvents: 0,
  liveMs: 0,
};

test("a watch moves because its backend goes, ended it, or was lost", () => {
  assert.equal(
    [moveReason("ended", true), moveReason("ended", false), moveReason("broken", false)],
    ["draining", "ended", "lost"],
  );
});

test("of an end the nearest reason is told: the client, the resumes that came to nothing, where it stood", () => {
  const reasons: readonly (readonly [Partial<Ending>, string])[] = [
    [{ isBlocked: true, isRepeated: true }, "slow_client"],
    [{ isRepeated: true, phase: "listing" }, "no_progress"],
    [{ phase: "opening" }, "start_from_now"],
    [{ phase: "listing" }, "initial_events"],
    [{}, "out_of_order"],
  ];
  for (const [more, reason] of reasons) assert.is(endReason({ ...live, ...more }), reason);
});

test.run();
