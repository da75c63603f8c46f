/** Tests the test runner: a test that did not run must not count as passed, whatever uvu reports. */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { outcomeOf } from "./support/outcome.ts";
import { within } from "./support/within.ts";

const test = suite("run");

const thrown = `() => { throw new Error("what the hook says"); }`;
/** What each test file contains, by name, besides one test that passes. */
const files: Readonly<Record<string, string>> = {
  good: "",
  before: `test.before(${thrown});`,
  "before-each": `test.before.each(${thrown});`,
  "after-each": `test.after.each(${thrown});`,
  after: `test.after(${thrown});`,
  "before-and-after": `test.before(${thrown});\ntest.after(() => { throw new Error("what comes of it"); });`,
  "after-rejects": `test.after(async () => { throw new Error("what the hook says"); });`,
  "after-each-of-a-failure": `test("fails", () => { throw new Error("what the test says"); });\ntest.after.each(${thrown});`,
};
const textOf = (hooks: string): string =>
  `import { suite } from "uvu";\nconst test = suite("a");\n${hooks}\ntest("passes", () => {});\ntest.run();\n`;

type Ran = { readonly code: number | null; readonly said: string };

/** Runs the test runner over these files, in a new directory. */
async function run(all: Readonly<Record<string, string>>): Promise<Ran> {
  const directory = mkdtempSync(join(tmpdir(), "watchkeeper-run-"));
  try {
    symlinkSync(join(process.cwd(), "node_modules"), join(directory, "node_modules"));
    mkdirSync(join(directory, "test"));
    for (const [name, text] of Object.entries(all))
      writeFileSync(join(directory, "test", `${name}.test.ts`), text);
    writeFileSync(join(directory, "package.json"), '{"type":"module"}');
    const child = spawn(process.execPath, [join(process.cwd(), "test/run.ts")], {
      cwd: directory,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        said += chunk.toString();
      });
    const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
    return { code: await within(50_000, "the runner's end", ended), said };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test("a hook that throws, wherever, fails its file and is told with its words", async () => {
  const { code, said } = await run(
    Object.fromEntries(Object.entries(files).map(([name, hooks]) => [name, textOf(hooks)])),
  );
  assert.is(code, 1);
  for (const name of Object.keys(files)) {
    const mark = name === "good" ? "✓" : "✗";
    assert.match(said, `${mark} test/${name}.test.ts`, said);
  }
  const told = said.split("what the hook says").length - 1;
  assert.ok(told >= Object.keys(files).length - 1, `${told} were told: ${said}`);
  assert.match(said, "what the test says");
});

test("a file in which nothing ran, or which says nothing at all, fails", async () => {
  const { code, said } = await run({
    empty: "",
    "no-tests": `import { suite } from "uvu";\nsuite("a").run();\n`,
    "no-run": `import { suite } from "uvu";\nsuite("a")("passes", () => {});\n`,
    ends: `import { suite } from "uvu";\nconst test = suite("a");\ntest("passes", () => process.exit(0));\ntest.run();\n`,
  });
  assert.is(code, 1);
  assert.match(said, "0 passed, 4 failed");
});

test("a file that ends the process which it shares with others fails, and the files after it run", async () => {
  const passing = textOf("");
  const { code, said } = await run({
    first: passing,
    killed: textOf('test("ends", () => { process.kill(process.pid, "SIGKILL"); });'),
    last: passing,
  });
  assert.is(code, 1);
  assert.match(said, "✗ test/killed.test.ts");
  assert.match(said, "✓ test/first.test.ts");
  assert.match(said, "✓ test/last.test.ts");
});

test("what uvu leaves out of its sum is a failure, with 0 as well", () => {
  const said = "  Total:     3\n  Passed:    1\n  Skipped:   0\n";
  assert.equal(outcomeOf("a", said, 0), { file: "a", passed: 1, failed: 2, skipped: 0 });
  assert.is(outcomeOf("a", "  Total:     0\n  Passed:    0\n  Skipped:   2\n", 0).failed, 0);
  assert.is(outcomeOf("a", "  Total:     1\n  Passed:    1\n  Skipped:   0\n", 1).failed, 1);
  assert.is(outcomeOf("a", "", null).failed, 1);
});

test.run();
