import { suite } from "uvu";
import * as assert from "uvu/assert";
import { BackendCounts } from "../../../src/upstream/pool/backend-counts.ts";

const test = suite("upstream/pool/backend-counts");

test("counts are kept by backend and key, and those without a backend stay", () => {
  const counts = new BackendCounts<"x" | "y">();
  counts.of("a", "x").add(2);
  counts.of("a", "y").add(1);
  counts.of("", "x").add(4);
  counts.of("a", "x").add(3);
  const all = [
    { backend: "a", key: "x", count: 5 },
    { backend: "a", key: "y", count: 1 },
    { backend: "", key: "x", count: 4 },
  ];
  assert.equal(counts.all, all);
  counts.reconcile(["a"]);
  assert.equal(counts.all, all);
});

test("removed backends are one sum for each key, however many come and go", () => {
  const counts = new BackendCounts<"x" | "y">();
  for (let index = 0; index < 100; index += 1) {
    counts.of(`b${index}`, "x").add(1);
    counts.of(`b${index}`, "y").add(2);
    counts.reconcile([`b${index}`]);
    assert.ok(counts.size <= 4, String(counts.size));
  }
  counts.reconcile([]);
  assert.equal(counts.all, [
    { backend: "other", key: "x", count: 100 },
    { backend: "other", key: "y", count: 200 },
  ]);
});

test("a counter of a removed backend counts for the sum, also after the backend was added again", () => {
  const counts = new BackendCounts();
  const before = counts.of("a", "x");
  before.add(1);
  counts.reconcile(["b"]);
  before.add(1);
  counts.of("a", "x").add(5);
  before.add(1);
  assert.equal(counts.all, [
    { backend: "other", key: "x", count: 3 },
    { backend: "a", key: "x", count: 5 },
  ]);
});

test.run();
