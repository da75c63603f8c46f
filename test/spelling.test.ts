/**
 * Checks the spelling of every page. Each word must be in the British or the American dictionary, or in the list of our
 * field's terms (support/words.txt).
 */
import { globSync, readFileSync } from "node:fs";
import american from "dictionary-en";
import british from "dictionary-en-gb";
import nspell from "nspell";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("spelling");

const root = new URL("..", import.meta.url).pathname;
const dictionaries = [british, american].map(({ aff, dic }) => nspell(Buffer.from(aff), Buffer.from(dic)));
const ours = new Set(readFileSync(`${root}test/support/words.txt`, "utf8").trim().split("\n"));
const pages = globSync("**/*.md", { cwd: root, exclude: (name) => name.includes("node_modules") });

/** Returns the page's text without code, addresses and markup. */
function proseOf(page: string): string {
  return page
    .replace(/^(```|~~~)[\s\S]*?^\1/gm, " ")
    .replace(/`[^`]*`/g, " ")
    .replace(/\]\([^)]*\)/g, "]")
    .replace(/https?:\S+/g, " ")
    .replace(/<[^>]*>/g, " ");
}

/** Names like `maxStreams` and signs like TLS are not in the dictionary. */
function wordsOf(prose: string): string[] {
  const words = [...prose.matchAll(/\p{L}[\p{L}’']*\p{L}/gu)].map(([word]) => word.replaceAll("’", "'"));
  return words.filter((word) => !/[A-Z]/.test(word.slice(1)));
}

function isWord(word: string): boolean {
  const stem = word.replace(/'s$/, "");
  return dictionaries.some((one) => one.correct(word) || one.correct(stem)) || ours.has(stem.toLowerCase());
}

test("no page has an unknown word", () => {
  const unknown = pages.flatMap((page) => {
    const words = wordsOf(proseOf(readFileSync(root + page, "utf8")));
    return words.filter((word) => !isWord(word)).map((word) => `${page}: ${word}`);
  });
  assert.equal([...new Set(unknown)], []);
  assert.ok(pages.length > 50, `${pages.length} pages`);
});

test("a slip is seen", () => {
  const slips = wordsOf(proseOf("It recieves `recieves` teh [answer](https://exmaple.test), seperately."));
  assert.equal(
    slips.filter((word) => !isWord(word)),
    ["recieves", "teh", "seperately"],
  );
});

test("each word of the project's own list is used, and in its place", () => {
  const used = new Set(
    pages
      .flatMap((page) => wordsOf(proseOf(readFileSync(root + page, "utf8"))))
      .map((word) => word.toLowerCase()),
  );
  const isUsed = (word: string): boolean => used.has(word) || used.has(`${word}'s`);
  assert.equal(
    [...ours].filter((word) => !isUsed(word)),
    [],
  );
  assert.equal([...ours], [...ours].toSorted());
});

test.run();
