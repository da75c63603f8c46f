/** Generates docs/cli.md from the table of commands, and checks that it is current. */
import { readFileSync, writeFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { allCommands, type CommandSpec, type Option } from "../../../src/cli/commands/commands.ts";
import { aboutOf, flagOf, usageLine } from "../../../src/cli/commands/help.ts";

const test = suite("cli/commands/cli-page");
const file = "docs/cli.md";
const head = `# The command line

Generated from the table of commands by \`node test/cli/commands/cli-page.test.ts --write\`. \`watchkeeper COMMAND --help\` prints the same.

Commands for a running proxy (status, get, explain, top, tap, bundle; drain, undrain, move, reload) use its [JSON API](admin-api.md) at the address in \`--admin\`, in
\`WATCHKEEPER_ADMIN\`, or at 127.0.0.1:7480. The API is on loopback: for a proxy on another host use \`ssh -L 7480:127.0.0.1:7480 HOST\` or
\`kubectl port-forward POD 7480\`. Data goes to stdout, messages go to stderr. \`-o json\` prints the API's response.
Text from clients is printed without terminal control characters.

The program is also installed as \`kubectl-watchkeeper\`, so that \`kubectl watchkeeper status\` works too.

| exit code | meaning |
| --------- | ------- |
| 0 | success |
| 1 | a negative result: something is wrong, or was not found |
| 2 | usage error: an invalid command, option or configuration |
| 3 | nothing answers at the address of the JSON API |
| 128 + n | ended by signal n |

`;

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

function cliPage(): string {
  return `${head}${allCommands.map(([name, spec]) => section(name, spec)).join("\n")}`;
}

function section(name: string, spec: CommandSpec): string {
  const { summary, options, exits, examples } = spec;
  const parts = [
    `## ${name}\n\n${upper(summary)}.\n`,
    fenced("text", [usageLine(name, spec).replace("usage: ", "")]),
    options.length === 0 ? "" : `| option | what |\n| ------ | ---- |\n${options.map(optionRow).join("")}`,
    exits === undefined ? "" : `Exit code ${exits}.\n`,
    examples === undefined ? "" : fenced("sh", examples),
  ];
  return parts.filter((part) => part !== "").join("\n");
}

function fenced(kind: string, lines: readonly string[]): string {
  return `\`\`\`${kind}\n${lines.join("\n")}\n\`\`\`\n`;
}

function optionRow(option: Option): string {
  const { short } = option;
  return `| ${short === undefined ? "" : `\`-${short}\`, `}\`${flagOf(option)}\` | ${upper(aboutOf(option))} |\n`;
}

function upper(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

test.run();
