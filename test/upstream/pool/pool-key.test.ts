import { suite } from "uvu";
import * as assert from "uvu/assert";
import { poolKey } from "../../../src/upstream/pool/pool-key.ts";

const test = suite("upstream/pool/pool-key");

test("a key's name tells trust, kind and owner apart", () => {
  const names = [
    poolKey("proven", "plain"),
    poolKey("proven", "long"),
    poolKey("unproven", "plain"),
    poolKey("private", "plain", "1"),
    poolKey("private", "plain", "2"),
  ].map(({ name }) => name);
  assert.is(new Set(names).size, names.length);
  assert.is(names[3], "private plain 1");
});

test.run();
