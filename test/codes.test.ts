/**
 * Comments refer to decisions, attacks, faults and facts by a code (D6, A33, F11, W7, watch.md §5.1). Checks that docs
 * explains each code.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("codes");

const read = (file: string): string => readFileSync(file, "utf8");
const sources = globSync(["src/**/*.{ts,js}", "demo/**/*.ts"]).map((file) => ({ file, text: read(file) }));

/** Returns each text that the pattern matches in src, with the first file that contains it. */
function cited(pattern: RegExp): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const { file, text } of sources)
    for (const [, code = ""] of text.matchAll(pattern)) if (!found.has(code)) found.set(code, file);
  return found;
}

function missing(codes: ReadonlyMap<string, string>, isExplained: (code: string) => boolean): string[] {
  return [...codes].filter(([code]) => !isExplained(code)).map(([code, file]) => `${code} in ${file}`);
}

test("decisions and faults are explained in docs/decisions", () => {
  const page = read("docs/decisions/README.md");
  const codes = cited(/\b([DFG]\d{1,2})\b/g);
  assert.ok(codes.size > 10);
  assert.equal(
    missing(codes, (code) => new RegExp(`\\*\\*${code}\\b`).test(page)),
    [],
  );
});

test("attacks are rows of docs/attacks.md", () => {
  const rows = new Set(
    [...read("docs/attacks.md").matchAll(/^(?:\| |- \*\*)((?:[AF]\d+(?:, |–|))+)/gm)].flatMap(
      ([, list = ""]) =>
        list.split(", ").flatMap((part) => {
          const [from = 0, to = from] = part.split("–").map((code) => Number(code.slice(1)));
          return Array.from({ length: to - from + 1 }, (_, index) => `A${from + index}`);
        }),
    ),
  );
  assert.equal(
    missing(cited(/\b(A\d{1,2})\b/g), (code) => rows.has(code)),
    [],
  );
});

test("what watch.md is cited for stands there under the same number", () => {
  const page = read("docs/watch.md");
  const headings = new Set([...page.matchAll(/^#+ ([\d.]+) /gm)].map(([, number]) => number));
  const sections = cited(/watch\.md[^\n]{0,30}?§ ?(\d+(?:\.\d+)?)/g);
  assert.ok(sections.size > 15);
  assert.equal(
    missing(sections, (number) => headings.has(number)),
    [],
  );
  assert.equal(
    missing(cited(/\b(W\d)\b/g), (code) => page.includes(`**${code}**`)),
    [],
  );
});

test("README links the index, and the index links every page of docs, itself or through the README of a folder", () => {
  const index = read("docs/README.md");
  const isLinked = (file: string): boolean => {
    const folder = join(dirname(file), "README.md");
    return (
      index.includes(`](${file.slice("docs/".length)})`) ||
      (folder !== file && existsSync(folder) && read(folder).includes(basename(file)))
    );
  };
  assert.match(read("README.md"), "](docs/README.md");
  const pages = globSync("docs/**/*.md").filter((file) => file !== "docs/README.md");
  assert.ok(pages.length > 20);
  assert.equal(
    pages.filter((file) => !isLinked(file)),
    [],
  );
});

test.run();
