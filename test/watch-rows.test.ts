/** Checks that watch.md §11 lists, for each of its 24 rows, the test files in which the title of a test names the row. */
import { globSync, readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("watch rows");

const rowCount = 24;

type Named = { readonly row: number; readonly file: string };

/** All titles of tests that name a row, also in tables of tests and in parts of the tests with real clusters. */
function named(): Named[] {
  return globSync("test/**/*.test.ts").flatMap((file) =>
    [
      ...readFileSync(file, "utf8").matchAll(
        /(["`])((?:(?!\1)[^\n\\]|\\.)*\((?:[\w§./, ]+, )?rows? ([\d, ]+)\))\1/g,
      ),
    ].flatMap(([, , , rows = ""]) => rows.split(",").map((row) => ({ row: Number(row), file }))),
  );
}

/** The list of the page: for each row, the test files, by their path below test/ without ".test.ts". */
function listed(): readonly string[] {
  const [, list = ""] = readFileSync("docs/watch.md", "utf8").split("\n## 11 ");
  const items = list.replaceAll(/\n {2,}/g, " ").matchAll(/^(\d+)\. .+?: (`.+`)$/gm);
  return [...items].flatMap(([, row = "", files = ""]) =>
    files.split(", ").map((file) => `${row} test/${file.replaceAll("`", "")}.test.ts`),
  );
}

test("each row names exactly the test files in which a title names the row", () => {
  const titled = new Set(named().map(({ row, file }) => `${row} ${file}`));
  assert.equal(listed().toSorted(), [...titled].toSorted());
});

test("there are 24 rows, each with a test at least", () => {
  const rows = new Set(listed().map((line) => Number(line.split(" ")[0])));
  assert.equal(
    [...rows].toSorted((a, b) => a - b),
    Array.from({ length: rowCount }, (_, index) => index + 1),
  );
});

test.run();
