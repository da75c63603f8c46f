import { readFileSync, writeFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { cliPage } from "../../../src/cli/commands/cli-page.ts";
import { allCommands } from "../../../src/cli/commands/commands.ts";

const test = suite("cli/commands/cli-page");
const file = "docs/cli.md";
if (process.argv.includes("--write")) writeFileSync(file, cliPage());

test("docs/cli.md is current: --write makes it so", () => {
  assert.is(readFileSync(file, "utf8"), cliPage());
});

test("every option of every command is on it, and no line breaks a table", () => {
  const page = cliPage();
  for (const [name, { options }] of allCommands) {
    assert.match(page, `\n## ${name}\n`);
    for (const option of options) assert.match(page, `\`--${option.name}`);
  }
  for (const line of page.split("\n").filter((one) => one.startsWith("| `")))
    assert.is(line.split(" | ").length, 2, line);
});

test.run();
