import { suite } from "uvu";
import * as assert from "uvu/assert";
import { laneKey } from "../../../src/proxy/upstream/lane-key.ts";

const test = suite("proxy/lane-key");

test("a key's name tells trust, kind and owner apart", () => {
  const names = [
    laneKey("proven", "plain"),
    laneKey("proven", "long"),
    laneKey("unproven", "plain"),
    laneKey("private", "plain", "1"),
    laneKey("private", "plain", "2"),
  ].map(({ name }) => name);
  assert.is(new Set(names).size, names.length);
  assert.is(names[3], "private plain 1");
});

test.run();
