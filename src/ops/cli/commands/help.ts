/** Generates the texts of `--help` from the table of commands. */
import { allCommands, type CommandSpec, type Option } from "./commands.ts";

export function overview(): string {
  const rows = allCommands.map(([name, { summary }]): HelpLine => [name, summary]);
  return `usage: watchkeeper COMMAND [options]\n\n${alignedColumns(rows)}\nwatchkeeper COMMAND --help describes one command.\n`;
}

export function helpOf(name: string, spec: CommandSpec): string {
  const { summary, options, examples = [] } = spec;
  return [
    `${usageLine(name, spec)}\n\n  ${summary}\n`,
    options.length === 0 ? "" : `options:\n${alignedColumns(options.map(optionRow))}`,
    `exit codes:\n${alignedColumns(exitsOf(spec))}`,
    examples.length === 0 ? "" : `examples:\n${examples.map((line) => `  ${line}\n`).join("")}`,
  ]
    .filter((part) => part !== "")
    .join("\n");
}

export function usageLine(name: string, spec: CommandSpec): string {
  return `usage: watchkeeper ${name} ${usageOf(spec)}`.trimEnd();
}

/** Returns the text that follows the command's name in a usage line, such as "KIND [NAME] [--admin ADDRESS]". */
export function usageOf({ words, options }: CommandSpec): string {
  const parts = options.map((option) => {
    const { isRequired = false, isMultiple = false } = option;
    const flag = flagOf(option);
    return `${isRequired ? flag : `[${flag}]`}${isMultiple ? "..." : ""}`;
  });
  return [words, ...parts].filter((part) => part !== "").join(" ");
}

export function flagOf({ name, value }: Option): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`;
}

export function aboutOf({ about, usual, only }: Option): string {
  const purpose = only === undefined ? about : `${only.join(", ")}: ${about}`;
  return usual === undefined ? purpose : `${purpose}; default: ${usual}`;
}

type HelpLine = readonly [name: string, text: string];

function optionRow(option: Option): HelpLine {
  const { short } = option;
  return [`${short === undefined ? "    " : `-${short}, `}${flagOf(option)}`, aboutOf(option)];
}

const unreachable = "nothing answers at the address of the JSON API";

function exitsOf({ options, exits }: CommandSpec): HelpLine[] {
  const [, bad] = exits?.split("1: ") ?? [];
  const asks = options.some(({ name }) => name === "admin");
  const hasReplicas = options.some(({ name }) => name === "replica");
  const reads = options.some(({ name }) => name === "config");
  return [
    ["0", "success"],
    ...(bad === undefined ? [] : [["1", bad] as const]),
    ["2", reads ? "usage error, or the configuration is not valid" : "usage error"],
    ...(asks
      ? [["3", hasReplicas ? `${unreachable}, or a replica does not answer` : unreachable] as const]
      : []),
  ];
}

function alignedColumns(rows: readonly HelpLine[]): string {
  const width = Math.max(...rows.map(([name]) => name.length)) + 2;
  return rows.map(([name, text]) => `  ${name.padEnd(width)}${text}\n`).join("");
}
