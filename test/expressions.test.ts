/**
 * Checks that every regular expression in src takes linear time: a header field of 64 KiB may cost 5 ms, not 1.5 s
 * (A59). The test finds the expressions in the sources and generates worst-case inputs from them, so that it covers
 * each new expression without a list.
 */
import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { expressionsIn } from "./support/expressions.ts";
import { worstCases } from "./support/worst-cases.ts";

const test = suite("expressions");

const bytes = 65_536;
const mostMs = 5;
/** The number of runs, of which the fastest counts: the first one also compiles the expression. */
const runs = 4;

/**
 * Folders whose code runs in a process that serves no client: it reads only its user's files and the responses to its
 * own requests.
 */
const elsewhere = /^(?:src\/ops\/(?:cli|page)|demo)\//;
/** Files that never read other parties' text, with the reason. */
const own: Record<string, string> = {
  "page-files.ts": "the admin page's own index.html, once at the start",
  "duration.ts": "the operator's configuration; eight parts at most by the time that they are looked for",
};
/**
 * Expressions that the code builds with `RegExp(...)`. The test cannot read them from the source, so each is reviewed
 * here by hand.
 */
const made: Record<string, string> = {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it stands so in the source
  "operation-posts.ts": "of our own paths, each `{name}` of which becomes `([^/]+)`",
};

const found = globSync(["src/**/*.{ts,js}", "demo/**/*.ts"])
  .filter((file) => !elsewhere.test(file))
  .flatMap((file) => expressionsIn(file, readFileSync(file, "utf8")));

/**
 * The CPU time of this thread, in ms, in the fastest run: other processes use this machine, too. Stops early once a run
 * is fast enough.
 */
function fastest(run: () => void): number {
  let best = Number.POSITIVE_INFINITY;
  for (let at = 0; at < runs && best > mostMs; at += 1) {
    const before = process.threadCpuUsage();
    run();
    const { user, system } = process.threadCpuUsage(before);
    best = Math.min(best, (user + system) / 1000);
  }
  return best;
}

/** Returns an input for which the expression is too slow, with the time, or undefined if there is none. */
function slowCase(text: string, size = bytes): string | undefined {
  const end = text.lastIndexOf("/");
  const [source, flags] = [text.slice(1, end), text.slice(end + 1)];
  // Searches again after each match, as replace, split and matchAll do.
  const all = new RegExp(source, flags.includes("g") ? flags : `${flags}g`);
  for (const worst of worstCases(source, flags, size)) {
    const ms = fastest(() => worst.replace(all, ""));
    if (ms > mostMs) return `${JSON.stringify(worst.slice(0, 40))}... takes ${ms.toFixed(1)} ms`;
  }
  return undefined;
}

test("the scanner finds expressions, and nothing else", () => {
  const source = [
    'const a = /x[/]"\\/y/gi, b = 1 / 2 / 3; // /no/',
    "const c = `${a / b} /no/ ${/yes/.test(`/no/`)}`; /* /no/ */",
    "if (a) return /z$/.test('/no/'); const d = (a) / b / c;",
    "new RegExp(`^${a}$`);",
  ].join("\n");
  assert.equal(
    expressionsIn("a.ts", source).map(({ line, text }) => `${line} ${text}`),
    ['1 /x[/]"\\/y/gi', "2 /yes/", "3 /z$/", "4 RegExp(`^${a}$`);"],
  );
  assert.ok(found.length > 80, `${found.length} in src`);
});

test("the cases are the worst: what is known to be quadratic is found", () => {
  const known = [
    "/^bearer +[^.]+\\.([^.]+)\\.[^.]+$/i",
    "/[ \\t]+$/",
    "/^([^\\s:]+):[ \\t]*(.*)$/",
    "/[ \\t]*,[ \\t]*/",
    "/(\\d+)\\.(\\d+)$/",
    "/%.*$/",
    "/\\beyJ[\\w-]+\\.[\\w.-]+/gi",
  ];
  assert.equal(
    known.filter((text) => slowCase(text, bytes / 4) === undefined),
    [],
  );
});

test("64 KiB take no expression longer than 5 ms (A59)", () => {
  const slow = found
    .filter(({ text, file }) => text.startsWith("/") && own[basename(file)] === undefined)
    .flatMap(({ file, line, text }) => {
      const worst = slowCase(text);
      return worst === undefined ? [] : [`${file}:${line} ${text} ${worst}`];
    });
  assert.equal(slow, []);
});

test("expressions that are made at run time are known", () => {
  const files = found.filter(({ text }) => !text.startsWith("/")).map(({ file }) => basename(file));
  assert.equal([...new Set(files)], Object.keys(made));
});

test.run();
