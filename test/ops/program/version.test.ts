import { readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ownVersion } from "../../../src/ops/program/version.ts";

const test = suite("ops/program/version");

test("it is the one in package.json", () => {
  assert.is(ownVersion(), JSON.parse(readFileSync("package.json", "utf8")).version);
});

test.run();
