/** With --write, generates docs/cli.md from the table of commands. Without it, checks that the page is current. */
import { readFileSync, writeFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { allCommands, type CommandSpec, type Option } from "../../../src/cli/commands/commands.ts";
import { aboutOf, flagOf, usageLine } from "../../../src/cli/commands/help.ts";

const test = suite("cli/commands/cli-page");
const file = "docs/cli.md";
const head = `# The command line

This page is generated from the table of commands by \`node test/cli/commands/cli-page.test.ts --write\`. \`watchkeeper COMMAND --help\` prints this page's section about one command.

The commands status, get, explain, top, tap, bundle, drain, undrain, move, limit, limits, unlimit and reload use the [JSON API](admin-api.md) of a running watchkeeper process. The address of this process is the
value of \`--admin\`, else of \`WATCHKEEPER_ADMIN\`, else 127.0.0.1:7480. The JSON API listens on loopback by default. To reach watchkeeper on another host, use \`ssh -L 7480:127.0.0.1:7480 HOST\` or
\`kubectl port-forward POD 7480\`. Commands print data to stdout and messages to stderr. \`-o json\` prints the response of the JSON API, \`-o yaml\` the same response as YAML, and \`-o name\` one name a line.
With \`--replica NAME\`, the process at the address of \`--admin\` [forwards the command's requests](admin-api.md#replicas) to the replica NAME; with \`--all-replicas\`, it forwards them to every replica. \`watchkeeper get replicas\` lists the replicas. If a replica does not answer, the command prints a line about it to stderr.
In every output format, commands escape control characters in text that clients have sent.

The npm package also installs \`kubectl-watchkeeper\`, so that \`kubectl watchkeeper status\` works too.

| exit code | meaning |
| --------- | ------- |
| 0 | success |
| 1 | the command failed, or its result is negative, for example because an incident is active; each command below says when |
| 2 | the command, an option or the configuration is invalid |
| 3 | no watchkeeper process answers at the address of the JSON API, or a replica does not answer |
| 128 + n | signal n ended the command |

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
