import { existsSync, globSync, readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { docsPage } from "../../../src/ops/program/docs.ts";

const test = suite("ops/program/docs");

/** Files whose content users without the repository see: code that prints, sample configurations, and manifests. */
const files = globSync([
  "src/**/*.{ts,js,html}",
  "demo/**/*.ts",
  "config/*.yaml",
  "config/schema/*.json",
  "deploy/**/*.{yaml,txt,tpl,json}",
]).filter((file) => !file.endsWith(".d.ts"));

/** Returns the lines of a file. Removes the comments of code, but not those of sample configurations. */
function printedLines(file: string): readonly string[] {
  const text = readFileSync(file, "utf8");
  if (!/\.[tj]s$/.test(file)) return text.split("\n");
  return text
    .replaceAll(/\/\*.*?\*\//gs, "")
    .split("\n")
    .map((line) => line.replace(/(^|\s)\/\/ .*$/, ""));
}

test("no text that users see names a page of the repository by its path alone", () => {
  const bare = files.flatMap((file) =>
    printedLines(file)
      .map((line) => line.replaceAll(/watchkeeper docs [\w/-]+|docsPage\("[^"]*"\)/g, ""))
      .filter((line) => /\bdocs\/[a-z]|(?<![\w/.-])[a-z-]+\.md\b/.test(line))
      .map((line) => `${file}: ${line.trim().slice(0, 200)}`),
  );
  assert.equal(bare, []);
});

test("every page that users are sent to exists", () => {
  const calls = globSync(["src/**/*.ts", "demo/**/*.ts"]).flatMap((file) => [
    ...readFileSync(file, "utf8").matchAll(/\b(docsPage|runbook)\("([\w./-]+)"\)/g),
  ]);
  assert.ok(calls.length >= 12, `calls: ${calls.length}`);
  for (const [, call, path] of calls) {
    const page = call === "runbook" ? `docs/runbooks/Watchkeeper${path}.md` : `docs/${path}`;
    assert.ok(existsSync(page), page);
  }
  assert.is(docsPage("faq.md"), "watchkeeper docs faq");
  const named = files.flatMap((file) => [
    ...readFileSync(file, "utf8").matchAll(/\bwatchkeeper docs ([a-z][\w/-]+)/gi),
  ]);
  assert.ok(named.length >= 30, `commands: ${named.length}`);
  for (const [, topic = ""] of named)
    if (topic !== "runbooks/") assert.ok(existsSync(`docs/${topic}.md`), topic);
});

test("no text that users see has an address at a site that serves nothing, or a path of this machine", () => {
  const found = files.flatMap((file) =>
    printedLines(file)
      .filter((line) => /https?:\/\/watchkeeper\.dev|\$schema=\//.test(line) && !line.includes('"$id"'))
      .map((line) => `${file}: ${line.trim().slice(0, 200)}`),
  );
  assert.equal(found, []);
});

test.run();
