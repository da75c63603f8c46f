/**
 * Checks that what the pages mention exists: links and anchors, npm scripts, commands with their options, and files of
 * this repository.
 */
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type CommandSpec, commands, isCommand } from "../src/ops/cli/commands/commands.ts";
import { parseConfig } from "../src/ops/config/config.ts";
import { isProblems, lineOf } from "../src/ops/config/problem.ts";
import { countWords } from "./house/count.ts";

const test = suite("docs");

const pages = globSync(
  "{*.md,docs/**/*.md,config/**/*.md,deploy/**/*.md,bench/*.md,test/**/*.md,executable/*.md}",
  {
    exclude: ["**/node_modules/**"],
  },
);
const textOf = (page: string): string => readFileSync(page, "utf8");
/** Returns the page without code, in which text may look like a link or a heading. */
const proseOf = (page: string): string =>
  textOf(page)
    .replaceAll(/^```[^]*?^```$/gm, "")
    .replaceAll(/`[^`\n]*`/g, "");

/** Returns the anchors that GitHub makes of the page's headings. */
function anchorsOf(page: string): Set<string> {
  const headings = textOf(page)
    .replaceAll(/^```[^]*?^```$/gm, "")
    .matchAll(/^#+ (.+)$/gm);
  return new Set([...headings].map(([, text = ""]) => anchorOf(text)));
}

function anchorOf(heading: string): string {
  return heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}

test("every link inside the repository leads to a file, and to a heading of it", () => {
  const broken: string[] = [];
  let count = 0;
  for (const page of pages) {
    for (const [, target = ""] of proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      count += 1;
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? page : normalize(join(dirname(page), path));
      const isThere = existsSync(file) && (anchor === undefined || anchorsOf(file).has(anchor));
      if (!isThere) broken.push(`${page}: ${target}`);
    }
  }
  assert.equal(broken, []);
  assert.ok(count > 100, `${count} links`);
});

test("every npm script that a page names is there", () => {
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
  const known = new Set(Object.keys(scripts));
  const broken = pages.flatMap((page) =>
    [...textOf(page).matchAll(/npm run (?:-s |--silent )?([\w:-]+)/g)]
      .filter(([, script = ""]) => !known.has(script))
      .map(([said]) => `${page}: ${said}`),
  );
  assert.equal(broken, []);
});

/** Returns the lines of code on the page that call `watchkeeper`, in fenced and in indented blocks. */
function callsIn(page: string): string[] {
  let isFenced = false;
  const code = textOf(page)
    .split("\n")
    .filter((line) => {
      if (line.startsWith("```")) isFenced = !isFenced;
      return isFenced || line.startsWith("    ");
    });
  const call = /^\s*(?:\S+=\S+ )?(?:kubectl watchkeeper|watchkeeper|node bin\/watchkeeper\.js) ([a-z].*)$/;
  return code.flatMap((line) => call.exec(line)?.[1] ?? []);
}

test("every call of the program names a command and options that there are", () => {
  const broken: string[] = [];
  let count = 0;
  for (const page of pages.filter((one) => one !== "docs/cli.md")) {
    for (const call of callsIn(page)) {
      // Ignores what follows a pipe, a redirection or a comment sign, because it belongs to no call of `watchkeeper`.
      const [name = "", ...words] = (call.split(/ [|>#&] ?| {2,}/)[0] ?? "").split(/\s+/);
      if (!isCommand(name)) {
        broken.push(`${page}: ${call}`);
        continue;
      }
      count += 1;
      const spec: CommandSpec = commands[name];
      const known = new Set(
        spec.options.flatMap((one) => [
          `--${one.name}`,
          ...(one.short === undefined ? [] : [`-${one.short}`]),
        ]),
      );
      const options = words.map((word) => word.split("=")[0] ?? "").filter((word) => /^--?[a-z]/.test(word));
      broken.push(
        ...options
          .filter((one) => !known.has(one) && one !== "--help")
          .map((one) => `${page}: ${name} ${one}`),
      );
    }
  }
  assert.equal(broken, []);
  assert.ok(count > 30, `${count} calls`);
});

test("every file of the repository that a page names in code is there", () => {
  const broken: string[] = [];
  const rooted = /`((?:src|test|config|deploy|docs|bench|bin|executable)\/[\w./-]+)`/g;
  for (const page of pages)
    for (const [, path = ""] of textOf(page).matchAll(rooted)) {
      const file = path.replace(/\/$/, "");
      // docs/attacks.md names test files by their path below test/, without ".test.ts".
      const isTest = existsSync(`test/${file}.test.ts`);
      const isThere = isTest || (existsSync(file) && (statSync(file).isDirectory() || !path.endsWith("/")));
      // bench/results exists only after a benchmark.
      if (!isThere && file !== "bench/results") broken.push(`${page}: ${path}`);
    }
  assert.equal(broken, []);
});

test("every whole configuration on a page is a good one", () => {
  let count = 0;
  for (const page of pages)
    for (const [, block = ""] of textOf(page).matchAll(/^```yaml\n([^]*?)^```$/gm)) {
      if (!block.includes("kind: WatchkeeperConfiguration")) continue;
      count += 1;
      const config = parseConfig(block, page);
      if (isProblems(config)) throw new Error(config.map((problem) => lineOf(problem)).join("\n"));
    }
  assert.ok(count > 0);
});

test("the pages stay short: the words of all Markdown, the lines of README and CHANGELOG", () => {
  const { words } = countWords(".");
  const linesOf = (page: string): number => textOf(page).split("\n").length - 1;
  // This limit falls to 45,000 as the pages are written anew.
  assert.ok(words <= 41_000, `${words} words`);
  assert.ok(linesOf("README.md") <= 130, `${linesOf("README.md")} lines of README`);
  // Until there is a release, the changelog is one list of what the first release has.
  assert.ok(linesOf("CHANGELOG.md") <= 40, `${linesOf("CHANGELOG.md")} lines of CHANGELOG`);
});

test.run();
