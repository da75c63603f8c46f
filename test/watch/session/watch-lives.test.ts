import { suite } from "uvu";
import * as assert from "uvu/assert";
import { watchLimits } from "../../../src/watch/limits.ts";
import { WatchLives } from "../../../src/watch/session/watch-lives.ts";
import { manualClock } from "../../support/clock.ts";
import { PlayedWatch } from "../../support/watch-path.ts";

const test = suite("watch/session/watch-lives");

test("a watch whose backend is killed has the loss, the request elsewhere and the move in its life", () => {
  const watch = new PlayedWatch({ query: "resourceVersion=7" });
  watch.serve(watch.from, "+8a =9");
  watch.kill(watch.from);
  watch.serve(watch.to);
  const [exchange] = watch.path.exchanges.live;
  const life = exchange?.watch?.life.entries ?? [];
  assert.equal(
    life.map(({ state, version }) => [state, version]),
    [
      ["parked", "9"],
      ["resuming", "9"],
      ["streaming", "9"],
    ],
  );
  assert.is.not(life[0]?.backend, life[2]?.backend);
});

test("each watch has its own changes, in memory of a fixed size: the oldest changes are lost", () => {
  const clock = manualClock();
  const lives = new WatchLives();
  const [one, other] = [lives.begin(clock), lives.begin(clock)];
  one.changed("lose", "parked", "a", "7");
  one.changed("ask", "resuming", "a", "7");
  for (let count = 0; count < watchLimits.lifeEntries - 1; count += 1)
    other.changed("hedge", "hedged", "b", "8");
  assert.equal(
    one.entries.map(({ state }) => state),
    ["resuming"],
  );
  assert.is(other.entries.length, watchLimits.lifeEntries - 1);
  other.changed("drop", "streaming", "b", "8");
  assert.equal([one.entries.length, other.entries.length], [0, watchLimits.lifeEntries]);
  other.changed("cancel", "ended", "b", "8");
  assert.is(other.entries.at(-1)?.state, "streaming", "the admin API lists open watches only");
});

test("a hedge that a sentinel's stream has served is counted each time, and the states after it are not", () => {
  const lives = new WatchLives();
  const one = lives.begin(manualClock());
  for (let times = 0; times < 2; times += 1) {
    one.changed("compare", "sentinel", "a", "7");
    one.changed("hedge", "hedged", "a", "7");
  }
  one.changed("drop", "streaming", "a", "8");
  one.changed("lose", "parked", "a", "8");
  one.changed("ask", "resuming", "a", "8");
  one.changed("promote", "streaming", "b", "8");
  assert.equal(lives.hedges.all, [
    { backend: "a", key: "first", count: 2 },
    { backend: "a", key: "hedge", count: 0 },
    { backend: "a", key: "neither", count: 0 },
  ]);
});

test.run();
