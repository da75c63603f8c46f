/** Parses a command's arguments by its row in the table of commands. */
import { parseArgs } from "node:util";
import { Failure } from "../../base/failure.ts";
import { quote } from "../../config/problem.ts";
import type { CommandSpec } from "./command-spec.ts";
import { type CommandName, commands } from "./commands.ts";

/** Parsed options by name, and positional arguments. */
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

  /** Returns a whole number from `least` to `most`; default: `usual`. */
  whole(name: string, usual: number, [least, most]: readonly [number, number]): number | Failure {
    const text = this.text(name);
    if (text === undefined) return usual;
    const value = /^\d{1,9}$/.test(text) ? Number(text) : -1;
    if (value >= least && value <= most) return value;
    return usage(`--${name} must be a whole number from ${least} to ${most}, not ${quote(text)}`);
  }
}

/** @throws {TypeError} an unknown option, or one without its value: parseArgs' own error, which names it */
export function given(name: CommandName, args: readonly string[]): Given | Failure {
  const spec: CommandSpec = commands[name];
  const options = spec.options.map(({ name: long, short, value }) => {
    const type: "boolean" | "string" = value === undefined ? "boolean" : "string";
    return [long, short === undefined ? { type } : { type, short }] as const;
  });
  const { values, positionals } = parseArgs({
    args: [...args],
    options: Object.fromEntries(options),
    allowPositionals: true,
  });
  const taken = new Given(positionals, values);
  const [unwanted] = positionals;
  if (spec.words === "" && unwanted !== undefined) return usage(`Unexpected argument ${quote(unwanted)}`);
  return wrongChoice(spec, taken) ?? taken;
}

function wrongChoice(spec: CommandSpec, taken: Given): Failure | undefined {
  for (const { name, choices } of spec.options) {
    const value = taken.text(name);
    if (value !== undefined && choices?.includes(value) === false)
      return usage(`--${name} must be one of ${choices.join(", ")}, not ${quote(value)}`);
  }
  const [first] = taken.words;
  if (first === undefined || spec.choices === undefined || spec.choices.includes(first)) return undefined;
  return usage(`Cannot take ${quote(first)}: it must be one of ${spec.choices.join(", ")}`);
}

/** A usage error: exit code 2. */
export function usage(message: string): Failure {
  return new Failure("bad-request", "client", message);
}
