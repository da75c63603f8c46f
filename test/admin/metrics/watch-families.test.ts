import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Snapshot } from "../../../src/admin/metrics/family.ts";
import { Tally } from "../../../src/admin/metrics/tally.ts";
import { watchFamilies } from "../../../src/admin/metrics/watch-families.ts";
import { Journal } from "../../../src/events/journal.ts";
import { manualClock } from "../../support/clock.ts";
import { idle } from "../../support/snapshot.ts";

const test = suite("admin/watch-families");

function rows(name: string, watches: Partial<Snapshot["watches"]>): unknown {
  const family = watchFamilies.find((one) => one.name === name);
  const now = { ...idle, watches: { ...idle.watches, ...watches } };
  return family?.rows(now, new Tally(new Journal(manualClock())));
}

test("watches are told by their state, their moves and ends by the reason", () => {
  const counts = new Map([
    ["one", 1],
    ["other", 2],
  ]);
  const told = [
    [["one"], 1],
    [["other"], 2],
  ];
  assert.equal(rows("watches", { states: counts }), told);
  assert.equal(rows("watch_moves_total", { moves: counts }), told);
  assert.equal(rows("watch_ends_total", { ends: counts }), told);
});

test("what needs no reason is one number", () => {
  assert.equal(rows("watches_parked", { waiting: 3 }), [[[], 3]]);
  assert.equal(rows("watch_hedges_total", { hedges: 4 }), [[[], 4]]);
  assert.equal(rows("watch_bookmark_refreshes_total", { refreshes: 5 }), [[[], 5]]);
  const progressRequests = { answered: 3, refused: 2, unanswered: 1 };
  assert.equal(rows("watch_progress_requests_total", { progressRequests }), [
    [["answered"], 3],
    [["refused"], 2],
    [["unanswered"], 1],
  ]);
  assert.equal(rows("watch_sentinels", { sentinels: 6 }), [[[], 6]]);
  assert.equal(rows("watch_sentinel_streams_total", { sentinelLegs: 7 }), [[[], 7]]);
  const origins = { custom: 3, aggregated: 2, unknown: 1 };
  assert.equal(rows("watched_apis", { origins }), [
    [["custom"], 3],
    [["aggregated"], 2],
    [["unknown"], 1],
  ]);
  const timeTravel = { outdated: 6, demanded: 8, refused: 7 };
  assert.equal(rows("stale_responses_total", { timeTravel }), [[[], 6]]);
  assert.equal(rows("stale_read_guard_requests_total", { timeTravel }), [
    [["rewritten"], 8],
    [["refused"], 7],
  ]);
  assert.equal(rows("stalled_caches", { stalls: 9 }), [[[], 9]]);
  assert.equal(rows("watch_version_regressions_total", { violations: 5 }), [[[], 5]]);
});

test.run();
