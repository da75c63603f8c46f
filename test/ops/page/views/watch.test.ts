import { suite } from "uvu";
import * as assert from "uvu/assert";
import { silenceOf } from "../../../../src/ops/page/views/watch.js";

const test = suite("ops/page/views/watch");

test("a bookmark is a sign of life as good as an event", () => {
  const silence = (lastEventAgeMs: number | null, lastBookmarkAgeMs: number | null): number | null =>
    silenceOf({ lastEventAgeMs, lastBookmarkAgeMs });
  assert.is(silence(900_000, 40_000), 40_000);
  assert.is(silence(200, null), 200);
  assert.is(silence(null, 40_000), 40_000);
  assert.is(silence(null, null), null, "it has not said anything yet");
});

test.run();
