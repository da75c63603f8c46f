/** docs/watches.md says which tests show each of the 24 rows of watch.md §11; the titles of tests say which row they are of. */
import { globSync, readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("watch rows");

const rowCount = 24;

type Named = { readonly row: number; readonly file: string; readonly title: string };

/** Titles that name a row, wherever a test, a table of tests or a real part has one. */
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

/** The page's table: a row's number, what could go wrong, and its tests. */
function listed(): Named[] {
  const lines = readFileSync("docs/watches.md", "utf8").matchAll(/^\| (\d+) \| [^|]+ \| ([^|]+) \|$/gm);
  return [...lines].flatMap(([, row = "", tests = ""]) =>
    tests.split("<br>").map((one) => {
      const [, file = "", title = ""] = /^`([^`]+)`: (.+)$/.exec(one.trim()) ?? [];
      return { row: Number(row), file, title };
    }),
  );
}

/** Without the value that a table of tests puts before a title: the page does not have it. */
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
