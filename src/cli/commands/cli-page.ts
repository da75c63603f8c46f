/** docs/cli.md, made of the table of commands: a test sees to it that it is current. Pure. */
import { type CommandSpec, flagOf, type Option, usageOf } from "./command-spec.ts";
import { allCommands } from "./commands.ts";
import { aboutOf } from "./help.ts";

export function cliPage(): string {
  return `${head}${allCommands.map(([name, spec]) => section(name, spec)).join("\n")}`;
}

function section(name: string, spec: CommandSpec): string {
  const { summary, options, exits, examples } = spec;
  const parts = [
    `## ${name}\n\n${upper(summary)}.\n`,
    fenced("text", [`watchkeeper ${name} ${usageOf(spec)}`.trimEnd()]),
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

const head = `# The command line

Made from the table of commands: \`node test/cli/commands/cli-page.test.ts --write\`. \`watchkeeper COMMAND --help\` says the same.

Commands for a running proxy (status, get, explain, top, tap, bundle; drain, undrain, move, reload) ask its [JSON API](admin-api.md) at \`--admin\`, at
\`WATCHKEEPER_ADMIN\`, or at 127.0.0.1:7480. It is on loopback: for a proxy elsewhere \`ssh -L 7480:127.0.0.1:7480 HOST\`, or
\`kubectl port-forward POD 7480\`. Data goes to stdout, words for people to stderr. \`-o json\` prints what the API answers.
What comes from clients is shown without any character that a terminal would obey.

Installed under the name \`kubectl-watchkeeper\` too: \`kubectl watchkeeper status\` is the same.

| exit code | is |
| --------- | -- |
| 0 | all is well, or what was asked for was done |
| 1 | the answer is bad: something is wrong, or is not there |
| 2 | it was not understood: a command, an option, or a configuration |
| 3 | nobody answers at the address of the JSON API |
| 128 + n | ended by signal n |

`;
