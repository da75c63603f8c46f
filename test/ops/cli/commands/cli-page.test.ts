/** With --write, generates docs/cli.md from the table of commands. Without it, checks that the page is current. */
import { readFileSync, writeFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { allCommands, type CommandSpec, type Option } from "../../../../src/ops/cli/commands/commands.ts";
import { aboutOf, flagOf } from "../../../../src/ops/cli/commands/help.ts";
import { listItem, unwrapped } from "../../../support/markdown.ts";

const test = suite("ops/cli/commands/cli-page");
const file = "docs/cli.md";
const head = `# The command line

Generated from the table of commands by \`node test/ops/cli/commands/cli-page.test.ts --write\`. \`watchkeeper COMMAND --help\`
explains its options and exit codes. The npm package also installs \`kubectl-watchkeeper\`, for \`kubectl watchkeeper
status\`.

The commands from \`status\` to \`bundle\` ask a running process through its [JSON API](admin-api.md), by default on
loopback. From elsewhere use \`ssh -L 7480:127.0.0.1:7480 HOST\` or \`kubectl port-forward POD 7480\`. Data goes to stdout,
messages to stderr. \`-o json\` prints the API's response, \`-o yaml\` the same as YAML, \`-o name\` a name a line.
\`--replica\` and \`--all-replicas\` are [forwarded](admin-api.md#replicas). Control characters in clients' text are
escaped.

Exit codes: 0 success; 1 the command failed or its result is negative, as its \`--help\` says; 2 the command, an option or
the configuration is invalid; 3 no process or replica answers; 128 + n signal n.

Options of several commands; the first three are those of each command that asks a process:

`;

/** Options that at least four commands have in the same words. They are explained once. */
const shared: ReadonlyMap<string, Option> = new Map(
  allCommands
    .flatMap(([, { options }]) => options)
    .filter((option, _, all) => all.filter((one) => itemOf(one) === itemOf(option)).length >= 4)
    .map((option) => [itemOf(option), option]),
);

/** The options by which a command reaches the JSON API: a command has all three, or none. */
const access: ReadonlySet<string> = new Set(["admin", "token-file", "ca-file"]);

if (process.argv.includes("--write")) writeFileSync(file, cliPage());

test("docs/cli.md is current: --write makes it so", () => {
  assert.is(readFileSync(file, "utf8"), cliPage());
});

test("every command and each of its options are on it", () => {
  const page = unwrapped(cliPage());
  const asking = allCommands
    .filter(([, { options }]) => options.filter(({ name }) => access.has(name)).length === access.size)
    .map(([name]) => name);
  const names = allCommands.map(([name]) => name);
  assert.equal(asking, names.slice(names.indexOf("status"), names.indexOf("bundle") + 1));
  for (const [name, { options }] of allCommands) {
    const [, rest = ""] = page.split(`\n## ${name}\n`);
    for (const option of options.filter(({ name: one }) => !access.has(one)))
      assert.match(rest.split("\n## ")[0] ?? "", `\`--${option.name}`, `${name} --${option.name}`);
  }
});

function cliPage(): string {
  return `${head}${[...shared.keys()].join("")}\n${allCommands.map(([name, spec]) => section(name, spec)).join("\n")}`;
}

function section(name: string, spec: CommandSpec): string {
  const { summary, words, options, examples } = spec;
  const flags = options.filter((option) => !access.has(option.name)).map((option) => optionOf(option));
  const parts = [
    `## ${name}\n\n${words === "" ? "" : `\`${words}\`: `}${upper(summary)}.\n`,
    flags.length === 0 ? "" : listItem(flags.join(", ")),
    examples === undefined ? "" : fenced("sh", examples),
  ];
  return parts.filter((part) => part !== "").join("\n");
}

function fenced(kind: string, lines: readonly string[]): string {
  return `\`\`\`${kind}\n${lines.join("\n")}\n\`\`\`\n`;
}

function optionOf(option: Option): string {
  const { short, isRequired = false } = option;
  return `${short === undefined ? "" : `\`-${short}\` or `}\`${flagOf(option)}\`${isRequired ? " (required)" : ""}`;
}

function itemOf(option: Option): string {
  return listItem(`${optionOf(option)}: ${aboutOf(option)}`);
}

function upper(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

test.run();
