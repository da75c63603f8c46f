/**
 * docs/watches.md lists the tests for each of the 24 rows of watch.md §11. The title of each such test names its rows.
 */
import { globSync, readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("watch rows");

const rowCount = 24;

type Named = { readonly row: number; readonly file: string; readonly title: string };

/** All titles of tests that name a row, also in tables of tests and in parts of the tests with real clusters. */
function named(): Named[] {
  return globSync("test/**/*.test.ts").flatMap((file) =>
    [
      ...readFileSync(file, "utf8").matchAll(
        /(["`])((?:(?!\1)[^\n\\]|\\.)*\((?:[\w§./, ]+, )?rows? ([\d, ]+)\))\1/g,
      ),
    ].flatMap(([, , title = "", rows = ""]) =>
      rows.split(",").map((row) => ({ row: Number(row), file, title })),
    ),
  );
}

/** The table of the page: the number of a row, what could go wrong, and the tests. */
function listed(): Named[] {
  const lines = readFileSync("docs/watches.md", "utf8").matchAll(/^\| (\d+) \| [^|]+ \| ([^|]+) \|$/gm);
  return [...lines].flatMap(([, row = "", tests = ""]) =>
    tests.split("<br>").map((one) => {
      const [, file = "", title = ""] = /^`([^`]+)`: (.+)$/.exec(one.trim()) ?? [];
      return { row: Number(row), file, title };
    }),
  );
}

/** The page omits the table value that precedes some titles, so it is removed here. */
const lineOf = ({ row, file, title }: Named): string =>
  `${row} ${file}: ${title.replace(/^\$\{\w+\}: /, "")}`;

test("each test that is listed is there, and its title names the row", () => {
  const titles = new Set(named().map(lineOf));
  assert.equal(
    listed()
      .map(lineOf)
      .filter((line) => !titles.has(line)),
    [],
  );
});

test("there are 24 rows, each with a test at least", () => {
  const rows = new Set(listed().map(({ row }) => row));
  assert.equal(
    [...rows].toSorted((a, b) => a - b),
    Array.from({ length: rowCount }, (_, index) => index + 1),
  );
});

test.run();
