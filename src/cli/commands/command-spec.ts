/** A command's specification: name, arguments and options. The table of all commands is commands.ts. Pure. */

export type Option = {
  /** Without leading dashes. */
  readonly name: string;
  readonly short?: string;
  /** The placeholder of its value in a usage line; default: none, a flag. */
  readonly value?: string;
  readonly isRequired?: boolean;
  readonly isMultiple?: boolean;
  /** The only valid values. */
  readonly choices?: readonly string[];
  readonly about: string;
  /** The default. */
  readonly usual?: string;
};

export type CommandSpec = {
  readonly summary: string;
  /** Positional arguments: "KIND [NAME]". */
  readonly words: string;
  /** Valid values of the first positional argument, if it is a closed list. */
  readonly choices?: readonly string[];
  readonly options: readonly Option[];
  /** What the exit codes mean for this command, beyond the common ones. */
  readonly exits?: string;
  readonly examples?: readonly string[];
};

/** Returns "KIND [NAME] [--admin ADDRESS]": what may follow a command's name. */
export function usageOf({ words, options }: CommandSpec): string {
  const parts = options.map((option) => {
    const { isRequired = false, isMultiple = false } = option;
    const flag = flagOf(option);
    return `${isRequired ? flag : `[${flag}]`}${isMultiple ? "..." : ""}`;
  });
  return [words, ...parts].filter((part) => part !== "").join(" ");
}

/** Returns "-o, --output FORMAT" without its short form: "--output FORMAT". */
export function flagOf({ name, value }: Option): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`;
}
