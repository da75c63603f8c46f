import { suite } from "uvu";
import * as assert from "uvu/assert";
import schema from "../../config/schema/watchkeeper.v1alpha2.json" with { type: "json" };
import { durationPattern, parseDuration } from "../../src/base/duration.ts";
import { cpuMs } from "../support/cpu.ts";

const test = suite("duration");

test("durations are read as Go writes them", () => {
  const read = ["500ms", "1s", "1m30s", "1.5h", "0s", "2h45m0.5s"].map((text) => parseDuration(text));
  assert.equal(read, [500, 1000, 90_000, 5_400_000, 0, 9_900_500]);
});

test("what Go would not read is no duration", () => {
  for (const text of ["", "5", "1 s", "s", "-1s", "1d", "1e3s", ".5s", "1s ", "١s", "1s".repeat(9)])
    assert.is(parseDuration(text), undefined, text);
});

test("a duration that takes long to refuse does not exist", () => {
  const tookMs = cpuMs(() => assert.is(parseDuration(`${"1".repeat(100_000)}x`), undefined));
  assert.ok(tookMs < 500, `${tookMs} ms`);
});

test("editors and the proxy know the same durations", () => {
  assert.is(schema.$defs.duration.pattern, durationPattern.source);
});

test.run();
