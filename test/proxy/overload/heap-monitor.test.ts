import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type HeapState, monitorHeap } from "../../../src/proxy/overload/heap-monitor.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/overload/heap-monitor");

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

test("each full collection tells which share of the heap's limit is live", async () => {
  const told = Promise.withResolvers<HeapState>();
  const stop = monitorHeap(told.resolve);
  collect();
  const { share, residentBytes } = await within(5000, "a collection", told.promise);
  assert.ok(share > 0 && share < 0.5, String(share));
  assert.ok(residentBytes > 2 ** 20, String(residentBytes));
  stop();
});

test.run();
