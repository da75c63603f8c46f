import { suite } from "uvu";
import * as assert from "uvu/assert";
import { tableOf } from "../../../../src/ops/cli/client/table.ts";
import { type Row, textAt } from "../../../../src/ops/cli/commands/rows.ts";

const test = suite("ops/cli/client/table");
const columns = [
  { head: "NAME", of: (row: object) => textAt({ ...row }, "name") },
  { head: "STATE", of: (row: object) => textAt({ ...row }, "state") },
  { head: "WHY", of: (row: object) => textAt({ ...row }, "why"), isWide: true },
];
const rows = [
  { name: "cp-1", state: "✓ ready" },
  { name: "a-longer-one", why: "x".repeat(80) },
];

test("columns are as wide as they need to be, and nothing stands behind the last", () => {
  assert.is(
    tableOf(columns, rows, { isWide: false, hasHeads: true }),
    "NAME          STATE\ncp-1          ✓ ready\na-longer-one  -\n",
  );
  assert.is(tableOf(columns, rows.slice(0, 1), { isWide: false, hasHeads: false }), "cp-1  ✓ ready\n");
});

test("what is long is cut in a narrow table only", () => {
  const long = [{ name: "n".repeat(80) }];
  const [, narrow = ""] = tableOf(columns, long, { isWide: false, hasHeads: true }).split("\n");
  assert.match(narrow, /^n{59}… {2}-$/);
  assert.match(tableOf(columns, long, { isWide: true, hasHeads: true }), "n".repeat(80));
});

test("a name that would paint the terminal is written out", () => {
  const [, line = ""] = tableOf(columns, [{ name: "a\x1b[2J\nb" }], { isWide: false, hasHeads: true }).split(
    "\n",
  );
  assert.is(line, "a\\u{1b}[2J\\u{a}b  -");
});

test("a rare column is omitted where no row has anything in it", () => {
  const some = [
    { head: "NAME", of: (row: Row) => textAt(row, "name") },
    { head: "CLUSTER", of: (row: Row) => textAt(row, "cluster"), isRare: true },
  ];
  const look = { isWide: false, hasHeads: true };
  assert.is(tableOf(some, [{ name: "a", cluster: "" }], look), "NAME\na\n");
  assert.is(
    tableOf(
      some,
      [
        { name: "a", cluster: "" },
        { name: "b", cluster: "eu" },
      ],
      look,
    ),
    "NAME  CLUSTER\na     -\nb     eu\n",
  );
});

test.run();
