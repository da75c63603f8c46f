/** `watchkeeper completion SHELL`: prints a script generated from the table of commands. It sends no requests. */
import { Failure } from "../../base/failure.ts";
import { allCommands, type CommandSpec, type Option } from "./commands/commands.ts";
import { given } from "./commands/options.ts";
import { failed, type Screen, standardScreen } from "./commands/screen.ts";

const makers = new Map([
  ["bash", bash],
  ["zsh", zsh],
  ["fish", fish],
]);

/** Exit codes: 0 printed, 2 usage error. */
export function completion(args: string[], screen: Screen = standardScreen): Promise<number> {
  const options = given("completion", args);
  if (options instanceof Failure) return Promise.resolve(failed(options, screen));
  screen.print(makers.get(options.words[0] ?? "")?.() ?? "");
  return Promise.resolve(0);
}

function nextWordsOf({ choices = [], options }: CommandSpec): string {
  return [...choices, ...options.map(({ name }) => `--${name}`), "--help"].join(" ");
}

function optionsWithChoices(spec: CommandSpec): readonly Option[] {
  return spec.options.filter(({ choices }) => choices !== undefined);
}

function takesFile({ value }: Option): boolean {
  return ["FILE", "DIR", "PATH"].includes(value ?? "");
}

function flagsOf({ name, short }: Option): string[] {
  return short === undefined ? [`--${name}`] : [`-${short}`, `--${name}`];
}

function bash(): string {
  const names = allCommands.map(([name]) => name).join(" ");
  const cases = allCommands.map(([name, spec]) => `    ${name}) words="${nextWordsOf(spec)}" ;;`);
  const values = allCommands.flatMap(([name, spec]) =>
    optionsWithChoices(spec).flatMap((option) =>
      flagsOf(option).map((flag) => `    ${name}:${flag}) words="${(option.choices ?? []).join(" ")}" ;;`),
    ),
  );
  const files = allCommands.flatMap(([name, spec]) =>
    spec.options.filter(takesFile).flatMap((option) => flagsOf(option).map((flag) => `${name}:${flag}`)),
  );
  return `# bash completion of watchkeeper: source <(watchkeeper completion bash)
_watchkeeper() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" command="\${COMP_WORDS[1]}" words=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${names} help" -- "$word"))
    return
  fi
  case "$command" in
${cases.join("\n")}
  esac
  case "$command:$before" in
${values.join("\n")}
    ${files.join("|")}) COMPREPLY=($(compgen -f -- "$word")); return ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _watchkeeper watchkeeper kubectl-watchkeeper
`;
}

function zsh(): string {
  const names = allCommands.map(([name, { summary }]) => `    '${name}:${quoted(summary)}'`);
  const cases = allCommands.map(([name, spec]) => `    ${name}) _arguments -s ${zshArguments(spec)} ;;`);
  return `#compdef watchkeeper kubectl-watchkeeper
# zsh completion of watchkeeper: watchkeeper completion zsh > "\${fpath[1]}/_watchkeeper"
_watchkeeper() {
  local -a commands=(
${names.join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command="\${words[2]}"
  shift words
  (( CURRENT-- ))
  case "$command" in
${cases.join("\n")}
  esac
}
if [ "$funcstack[1]" = "_watchkeeper" ]; then _watchkeeper "$@"; else compdef _watchkeeper watchkeeper kubectl-watchkeeper; fi
`;
}

function zshArguments({ choices, options }: CommandSpec): string {
  const words = choices === undefined ? [] : [`'1:word:(${choices.join(" ")})'`];
  const rest = options.flatMap((option) => {
    const { about, value, choices: values } = option;
    const action = values !== undefined ? `(${values.join(" ")})` : takesFile(option) ? "_files" : " ";
    const tail = value === undefined ? "" : `:${value}:${action}`;
    return flagsOf(option).map((flag) => `'${flag}[${quoted(about)}]${tail}'`);
  });
  return [...words, ...rest, "'--help[print help]'"].join(" ");
}

function quoted(text: string): string {
  return text.replaceAll("'", "'\\''").replace(/[[\]:]/g, "\\$&");
}

function fish(): string {
  const lines = ["# fish completion of watchkeeper", "complete -c watchkeeper -f"];
  for (const [name, spec] of allCommands) {
    lines.push(`complete -c watchkeeper -n __fish_use_subcommand -a ${name} -d '${fishText(spec.summary)}'`);
    const within = `complete -c watchkeeper -n '__fish_seen_subcommand_from ${name}'`;
    if (spec.choices !== undefined) lines.push(`${within} -a '${spec.choices.join(" ")}'`);
    for (const option of spec.options) lines.push(`${within} ${fishOption(option)}`);
  }
  return `${lines.join("\n")}\n`;
}

function fishOption(option: Option): string {
  const { name, short, value, choices, about } = option;
  const parts = [`-l ${name}`];
  if (short !== undefined) parts.push(`-s ${short}`);
  if (choices !== undefined) parts.push(`-x -a '${choices.join(" ")}'`);
  else if (takesFile(option)) parts.push("-r -F");
  else if (value !== undefined) parts.push("-x");
  return `${parts.join(" ")} -d '${fishText(about)}'`;
}

function fishText(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("'", "\\'");
}
