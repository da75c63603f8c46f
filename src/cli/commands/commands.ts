/**
 * The command line as data, for `--help`, the completion scripts and docs/cli.md, and for parsing the arguments of commands
 * that read the API. Each command is in the file of its name; cli.ts runs it.
 */

import type { CommandSpec, Option } from "./command-spec.ts";
import { configOption, setupCommands } from "./setup-commands.ts";

/** Lists that `get` can print, by their names in the API. */
export const kinds = ["backends", "watches", "clients", "leases", "certificates", "incidents"] as const;
export type Kind = (typeof kinds)[number];

export const shells = ["bash", "zsh", "fish"] as const;

const admin: Option = {
  name: "admin",
  value: "ADDRESS",
  about: "address of the JSON API: host:port or a URL",
  usual: "$WATCHKEEPER_ADMIN, or 127.0.0.1:7480",
};
const tokenFile: Option = {
  name: "token-file",
  value: "FILE",
  about: "bearer token, for an API with authorization",
  usual: "$WATCHKEEPER_TOKEN_FILE, or none",
};
const caFile: Option = {
  name: "ca-file",
  value: "FILE",
  about: "CA bundle that verifies an https:// ADDRESS",
  usual: "$WATCHKEEPER_CA_FILE, or the system's CAs",
};
/** How to reach the API. */
const reach = [admin, tokenFile, caFile] as const;
const formats = ["table", "wide", "json"] as const;
const output: Option = {
  name: "output",
  short: "o",
  value: "FORMAT",
  choices: formats,
  about: "table, wide or json",
  usual: "table",
};
const reason: Option = {
  name: "reason",
  value: "TEXT",
  about: "reason to log",
  usual: "none",
};
const plainOutput: Option = {
  ...output,
  choices: ["table", "json"],
  about: "table or json",
};

export const commands = {
  demo: {
    summary: "demonstrate it with embedded apiservers, no cluster needed",
    words: "",
    options: [
      {
        name: "port",
        value: "N",
        about: "port of the demo's proxy",
        usual: "8443, or any free port",
      },
      { name: "once", about: "exit after the last act" },
      {
        name: "faults",
        value: "LIST",
        about: "faults to play, separated by commas: hole, freeze, restart, or none",
        usual: "all",
      },
    ],
    exits: "1: it could not be played, or a fault affected watchkeeper's client",
  },
  incident: {
    summary: "play one of five incidents, without watchkeeper and with it",
    words: "000|001|002|003|004",
    choices: ["000", "001", "002", "003", "004"],
    options: [],
    exits: "1: an expectation failed with watchkeeper, or it could not be played",
    examples: ["watchkeeper incident 004"],
  },
  run: {
    summary: "serve with a configuration file",
    words: "",
    options: [
      configOption,
      { name: "pid-file", value: "FILE", about: "file for the process ID", usual: "none" },
    ],
    exits: "1: it ended because of an internal error",
  },
  ...setupCommands,
  status: {
    summary: "print backends, watches and active incidents on one screen",
    words: "",
    options: [...reach, plainOutput],
    exits: "1: an incident is active, or no backend is ready",
  },
  get: {
    summary: "list backends, watches, clients, leases, certificates, incidents",
    words: "KIND [NAME] [COLUMN=VALUE]...",
    choices: kinds,
    options: [
      ...reach,
      output,
      {
        name: "query",
        short: "q",
        value: "TEXT",
        about: "only rows with this text in a column",
        usual: "all",
      },
      {
        name: "sort",
        value: "COLUMN",
        about: 'column to sort by; "-" first: descending (--sort=-bytes)',
        usual: "see docs/admin-api.md",
      },
      { name: "limit", value: "N", about: "maximum number of rows, up to 50000", usual: "100" },
      { name: "no-headers", about: "omit the header" },
    ],
    exits: "1: there is no row of that NAME",
    examples: [
      "watchkeeper get watches backend=cp-2 state=hung",
      "watchkeeper get clients --sort=-relists --limit 10",
      "watchkeeper get leases -o json | jq '.items[] | select(.verdict != \"ok\")'",
    ],
  },
  explain: {
    summary: "print the evidence and the effect of an incident",
    words: "[INCIDENT]",
    options: [...reach, plainOutput],
    exits: "1: there is no such incident",
    examples: ["watchkeeper explain 42", "watchkeeper explain"],
  },
  top: {
    summary: "print the busiest watches or clients, updated continuously",
    words: "[watches|clients]",
    choices: ["watches", "clients"],
    options: [
      ...reach,
      plainOutput,
      { name: "once", about: "measure once and exit" },
      { name: "interval", value: "SECONDS", about: "interval between updates, from 1 to 60", usual: "2" },
      { name: "rows", value: "N", about: "maximum number of rows, up to 500", usual: "20" },
    ],
  },
  tap: {
    summary: "print events as they happen",
    words: "[KIND]",
    options: [
      ...reach,
      plainOutput,
      { name: "for", value: "SECONDS", about: "exit after this time, up to 86400", usual: "until a signal" },
    ],
    examples: [
      "watchkeeper tap",
      "watchkeeper tap backend. --for 60",
      "watchkeeper tap request. -o json | jq .path",
    ],
  },
  drain: {
    summary: "stop new requests to a backend, move its watches gradually, keep exec sessions",
    words: "BACKEND",
    options: [...reach, reason],
    exits: "1: there is no such backend, or no other one is ready",
    examples: ["watchkeeper drain cp-2 --reason 'kernel update'", "watchkeeper undrain cp-2"],
  },
  undrain: {
    summary: "end the drain of a backend",
    words: "BACKEND",
    options: [...reach, reason],
    exits: "1: there is no such backend",
  },
  move: {
    summary: "move one watch to another backend, transparently to its client",
    words: "AUDIT-ID",
    options: [...reach, reason],
    exits: "1: there is no such watch, or it cannot be moved now",
  },
  reload: {
    summary: "reload the configuration",
    words: "",
    options: [...reach, reason],
    exits: "1: it was rejected, and the last good one stays",
  },
  bundle: {
    summary: "write the proxy's state to a file, for a bug report",
    words: "",
    options: [
      ...reach,
      {
        name: "to",
        value: "PATH",
        about: "a .tar file, or a new directory",
        usual: "watchkeeper-TIME.tar",
      },
      { name: "metrics", value: "ADDRESS", about: "address of the metrics", usual: "127.0.0.1:7481" },
      { name: "names", about: "keep names and addresses; default: redacted" },
    ],
    exits: "1: it was not written",
  },
  completion: {
    summary: "print a script that completes these commands in a shell",
    words: "bash|zsh|fish",
    choices: shells,
    options: [],
    examples: [
      "source <(watchkeeper completion bash)",
      "watchkeeper completion fish > ~/.config/fish/completions/watchkeeper.fish",
    ],
  },
  version: { summary: "print the version", words: "", options: [] },
} as const satisfies Record<string, CommandSpec>;

export type CommandName = keyof typeof commands;

/** In the order of the table. */
export const allCommands: readonly (readonly [name: CommandName, spec: CommandSpec])[] = Object.keys(commands)
  .filter(isCommand)
  .map((name) => [name, commands[name]]);

export function isCommand(name: string): name is CommandName {
  return Object.hasOwn(commands, name);
}
