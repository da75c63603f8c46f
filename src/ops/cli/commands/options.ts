/** Parses the arguments of a command, as the table of commands declares them. */
import { parseArgs } from "node:util";
import { Failure } from "../../../base/failure.ts";
import { didYouMean, quote } from "../../config/problem.ts";
import { type CommandName, type CommandSpec, commands, type Option } from "./commands.ts";
import { flagOf, usageLine } from "./help.ts";

/** The parsed options and positional arguments of a command. */
export class Given {
  readonly words: readonly string[];
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(words: readonly string[], values: Readonly<Record<string, unknown>>) {
    this.words = words;
    this.#values = values;
  }

  has(name: string): boolean {
    return this.#values[name] === true;
  }

  text(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === "string" ? value : undefined;
  }

  all(name: string): readonly string[] {
    const values = this.#values[name];
    return Array.isArray(values) ? values.map(String) : [];
  }

  /** Returns an option's value as a whole number from `least` to `most`; `usual` if the option is absent. */
  whole<Usual>(
    name: string,
    usual: Usual,
    [least, most]: readonly [number, number],
  ): number | Usual | Failure {
    const text = this.text(name);
    if (text === undefined) return usual;
    const value = /^\d{1,9}$/.test(text) ? Number(text) : -1;
    if (value >= least && value <= most) return value;
    return usage(`--${name} must be a whole number from ${least} to ${most}, not ${quote(text)}`);
  }
}

/** Parses the arguments of a command. A Failure names the first argument that is wrong, and contains the usage line. */
export function given(name: CommandName, args: readonly string[]): Given | Failure {
  const spec: CommandSpec = commands[name];
  const options = spec.options.map(({ name: long, short, value, isMultiple = false }) => {
    const type: "boolean" | "string" = value === undefined ? "boolean" : "string";
    return [long, { type, multiple: isMultiple, ...(short === undefined ? {} : { short }) }] as const;
  });
  // In strict mode, parseArgs would throw errors in Node's own words.
  const { values, positionals, tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(options),
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const [first, ...rest] = positionals;
  const words = first === undefined ? [] : [spec.aliases?.get(first) ?? first, ...rest];
  const wrong = wrongSyntax(spec, args, tokens) ?? wrongWord(spec, words) ?? wrongOption(spec, words, values);
  return wrong === undefined ? new Given(words, values) : usage(`${wrong}\n${usageLine(name, spec)}`);
}

type Token = {
  readonly kind: string;
  readonly index: number;
  readonly name?: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
};

/** Returns an error for the first option that is unknown, lacks its value, or has a value although it is a flag. */
function wrongSyntax(
  { options }: CommandSpec,
  args: readonly string[],
  tokens: readonly Token[],
): string | undefined {
  for (const token of tokens.filter(({ kind }) => kind === "option")) {
    const known = options.find(({ name }) => name === token.name);
    const wrong = known === undefined ? unknownOption(options, args[token.index]) : wrongValue(known, token);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

/** The message does not repeat the text after "=", because that may be a secret. */
function unknownOption(options: readonly Option[], arg = ""): string {
  const [written = ""] = arg.split("=");
  const names = [...options.map(({ name }) => `--${name}`), "--help"];
  return `Unknown option ${quote(written)}${didYouMean(written, names)}`;
}

function wrongValue({ name, value: placeholder }: Option, token: Token): string | undefined {
  const { value, inlineValue } = token;
  if (placeholder === undefined) return value === undefined ? undefined : `--${name} takes no value`;
  const missing = `Missing ${placeholder} after --${name}`;
  if (value === undefined) return missing;
  // A value that begins with "-" is most likely the next option. The value "-" is stdin.
  if (inlineValue === true || !value.startsWith("-") || value === "-") return undefined;
  if (value.startsWith("--")) return missing;
  return `${missing} (write ${quote(`--${name}=${value}`)} for a value that begins with "-")`;
}

function wrongWord({ words, choices }: CommandSpec, taken: readonly string[]): string | undefined {
  const [first] = taken;
  // A command whose placeholders are separated by spaces takes any number of arguments.
  const most = words === "" ? 0 : words.includes(" ") ? taken.length : 1;
  if (taken.length > most) return `Unexpected argument ${quote(taken[most] ?? "")}`;
  if (first === undefined) return missingWord(words, choices);
  return choices?.includes(first) === false ? `Invalid argument ${quote(first)}${oneOf(choices)}` : undefined;
}

function missingWord(words: string, choices: CommandSpec["choices"]): string | undefined {
  if (words === "" || words.startsWith("[")) return undefined;
  return `Missing ${/^[A-Z-]+/.exec(words)?.[0] ?? "argument"}${oneOf(choices)}`;
}

function oneOf(choices: CommandSpec["choices"]): string {
  return choices === undefined ? "" : `: must be one of ${choices.join(", ")}`;
}

function wrongOption(
  { options }: CommandSpec,
  [first = ""]: readonly string[],
  values: Readonly<Record<string, unknown>>,
): string | undefined {
  const missing = options.find(({ name, isRequired }) => isRequired === true && values[name] === undefined);
  if (missing !== undefined) return `Missing ${flagOf(missing)}`;
  for (const { name, choices, only } of options) {
    const value = values[name];
    if (typeof value === "string" && choices?.includes(value) === false)
      return `--${name} must be one of ${choices.join(", ")}, not ${quote(value)}`;
    if (value !== undefined && only?.includes(first) === false)
      return `--${name} is an option of ${only.join(" and ")}, not of ${first}`;
  }
  return undefined;
}

/** Returns a Failure for invalid arguments. A command that returns it exits with code 2. */
export function usage(message: string): Failure {
  return new Failure("bad-request", "client", message);
}

/** Returns a Failure for a file of the user that a command cannot use. */
export function refused(message: string): Failure {
  return new Failure("bad-file", "client", message);
}
