import { spawnSync } from "node:child_process";
import { getHeapStatistics } from "node:v8";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { collect, type HeapState, monitorHeap } from "../../../src/proxy/overload/heap-monitor.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/overload/heap-monitor");

test("each full collection tells which share of the heap's limit is live", async () => {
  const told = Promise.withResolvers<HeapState>();
  const stop = monitorHeap(told.resolve);
  collect();
  const { share, residentBytes } = await within(5000, "a collection", told.promise);
  assert.ok(share > 0 && share < 0.5, String(share));
  assert.ok(residentBytes > 2 ** 20, String(residentBytes));
  stop();
});

/** Returns the resident size of the heap, in MiB. */
const resident = (): number => getHeapStatistics().total_physical_size >> 20;

test("what is no longer used goes, and its pages with it", () => {
  collect();
  const before = resident();
  let kept: unknown[] = Array.from({ length: 400_000 }, (_, at) => ({ at, words: [at, at] }));
  collect();
  const height = resident();
  // One object of every thousand stays alive.
  kept = kept.filter((_, at) => at % 1000 === 0);
  collect();
  const after = resident();
  assert.is(kept.length, 400);
  assert.ok(height - before > 16, `${before} MiB, ${height} at its height`);
  assert.ok(after - before < (height - before) / 4, `${before} MiB, ${height} at its height, ${after} after`);
});

const monitor = JSON.stringify(new URL("../../../src/proxy/overload/heap-monitor.ts", import.meta.url).href);

/** A program that prints the share of the old generation that is live. */
const measured = `
  import { monitorHeap } from ${monitor};
  monitorHeap(({ share }) => {
    process.stdout.write(String(share));
    process.exit(0);
  });
  gc();
  setTimeout(() => {}, 10_000);
`;

function shareWith(args: readonly string[], options = ""): number {
  const words = [
    "--expose-gc",
    "--max-old-space-size=96",
    ...args,
    "--input-type=module",
    "--eval",
    measured,
  ];
  const env = { ...process.env, NODE_OPTIONS: options };
  return Number(spawnSync(process.execPath, words, { env, encoding: "utf8" }).stdout);
}

test("the share is that of the old generation, wherever and however the size of the semi-spaces is set", () => {
  shareWith([]); // fills Node's compile cache: compiling the program takes 4 MB of the first process
  const shares = [
    shareWith([]),
    shareWith(["--max-semi-space-size=8"]),
    shareWith(["--max_semi_space_size=8", "--min-semi-space-size=1"]),
    shareWith(["--max-semi-space-size=8"], "--max-semi-space-size=32"),
  ];
  const [usual = 0] = shares;
  assert.ok(usual > 0 && shares.every((share) => Math.abs(share - usual) < 0.02), shares.join(" "));
});

/**
 * A program that fills 85 % of an old generation of 32 MiB with live objects, and collects it eight times without allocating
 * in between.
 */
const crowded = `
  import { getHeapStatistics, setFlagsFromString } from "node:v8";
  import { monitorHeap } from ${monitor};
  monitorHeap(() => {});
  for (const flag of process.argv.slice(1)) setFlagsFromString(flag);
  const live = [];
  for (let times = 0; times < 8; gc()) {
    if (getHeapStatistics().used_heap_size > 0.85 * 32 * 2 ** 20) times += 1;
    else for (let count = 0; count < 20_000; count += 1) live.push({ at: count, words: [1, 2] });
  }
  process.stdout.write(live.length > 0 ? "alive" : "");
  process.exit(0);
`;

function fate(...args: readonly string[]): string {
  const flags = [
    "--expose-gc",
    "--max-old-space-size=32",
    "--max-semi-space-size=4",
    // The size from which V8 has the rule. Node 26 has 0.95, too close to the end for a test.
    "--ineffective-gc-size-threshold=0.8",
    "--input-type=module",
    "--eval",
    crowded,
    "--",
  ];
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, ...args], { encoding: "utf8" });
  return stdout === "" ? (/FATAL ERROR: (.+?) Allocation/.exec(stderr)?.[1] ?? stderr) : stdout;
}

test("a heap of which 85 % are live does not end the process while most of its time is collection", () => {
  assert.is(fate(), "alive");
  // Shows that V8 still has the rule that the monitor turns off. Otherwise this test would prove nothing.
  assert.is(fate("--detect-ineffective-gcs-near-heap-limit"), "Ineffective mark-compacts near heap limit");
});

test.run();
