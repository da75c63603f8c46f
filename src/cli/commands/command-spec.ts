/** What is known of a command: its options, its words, and how it is called. The table of them all is commands.ts. Pure. */

export type Option = {
  /** Without its dashes. */
  readonly name: string;
  readonly short?: string;
  /** What stands for its value in a usage line; left out: it takes none. */
  readonly value?: string;
  readonly isRequired?: boolean;
  readonly isMultiple?: boolean;
  /** The only values there are. */
  readonly choices?: readonly string[];
  readonly about: string;
  /** What holds where it is left out. */
  readonly usual?: string;
};

export type CommandSpec = {
  readonly summary: string;
  /** What stands behind the name, besides options: "KIND [NAME]". */
  readonly words: string;
  /** What the first of those words may be, where that is a closed list. */
  readonly choices?: readonly string[];
  readonly options: readonly Option[];
  /** What the exit codes mean here, beyond those that all commands share. */
  readonly exits?: string;
  readonly examples?: readonly string[];
};

/** "KIND [NAME] [--admin ADDRESS]": what may stand behind a command's name. */
export function usageOf({ words, options }: CommandSpec): string {
  const parts = options.map((option) => {
    const { isRequired = false, isMultiple = false } = option;
    const flag = flagOf(option);
    return `${isRequired ? flag : `[${flag}]`}${isMultiple ? "..." : ""}`;
  });
  return [words, ...parts].filter((part) => part !== "").join(" ");
}

/** "-o, --output FORMAT" without its short form: "--output FORMAT". */
export function flagOf({ name, value }: Option): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`;
}
