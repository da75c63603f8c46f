import { suite } from "uvu";
import * as assert from "uvu/assert";
import { at, listOf, numberAt, rowOf, rowsAt, shown, textAt } from "../../../../src/ops/cli/commands/rows.ts";

const test = suite("ops/cli/commands/rows");

test("what is deep inside is found, and what is not there is missing", () => {
  const row = { renewedBy: { client: "10.0.0.7" }, odd: ["new", "failing"], idle: null, probes: { ok: 3 } };
  assert.is(textAt(row, "renewedBy.client"), "10.0.0.7");
  assert.is(textAt(row, "renewedBy.pod.name"), "");
  assert.is(textAt(row, "odd"), "new,failing");
  assert.is(textAt(row, "idle"), "");
  assert.is(textAt(row, "probes"), '{"ok":3}');
  assert.is(numberAt(row, "probes.ok"), 3);
  assert.is(numberAt(row, "odd"), undefined);
  assert.is(at(row, "idle"), null);
});

test("an answer of another kind is an empty list, not a fault", () => {
  for (const strange of [undefined, null, 7, "text", [], {}, { items: "none" }])
    assert.equal(listOf(strange).items, [], JSON.stringify(strange));
  assert.equal(rowOf([1]), {});
  assert.equal(rowsAt({ items: [1, { a: 2 }] }, "items"), [{}, { a: 2 }]);
  assert.equal(listOf({ kind: "WatchList", total: 9, matching: 2, items: [{}] }), {
    kind: "WatchList",
    total: 9,
    matching: 2,
    items: [{}],
  });
});

test("nothing that a terminal obeys is shown as it is (A53)", () => {
  assert.is(
    shown("a\x1b[31mb\r\nc\u2028\u202Ed\u0085"),
    "a\\u{1b}[31mb\\u{d}\\u{a}c\\u{2028}\\u{202e}d\\u{85}",
  );
  assert.is(shown("✗ kubelet/v1.36 (ä)"), "✗ kubelet/v1.36 (ä)");
});

test.run();
