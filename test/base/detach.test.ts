import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { clipped, detach } from "../../src/base/detach.ts";

const test = suite("own-text");

setFlagsFromString("--expose-gc");
const collect: unknown = runInNewContext("gc");

/**
 * Returns how many bytes of heap a thousand such texts keep alive. `made` derives each from a different text of 64 KiB.
 */
function keptBytes(made: (text: string) => string): number {
  const heldBytes = (): number => {
    if (typeof collect === "function") collect();
    return process.memoryUsage().heapUsed;
  };
  const before = heldBytes();
  const all = Array.from({ length: 1000 }, (_, at) => made(Buffer.alloc(65_536, String(at)).toString()));
  const kept = heldBytes() - before;
  assert.is(all.length, 1000);
  return kept;
}

test("a piece keeps all of the text that it is of, a text of its own does not", () => {
  assert.ok(keptBytes((text) => text.slice(0, 20)) > 30e6, "or this file is not needed");
  assert.ok(keptBytes((text) => detach(text.slice(0, 20))) < 2e6);
  assert.ok(keptBytes((text) => clipped(text, 20)) < 2e6);
});

test("it is the same text; what is short enough is not even copied", () => {
  assert.is(detach("über"), "über");
  assert.is(clipped("über", 4), "über");
  assert.is(clipped("über", 3), "übe");
});

test.run();
