/**
 * The command line as data: what `--help`, the completion scripts and docs/cli.md say, and what the commands that read
 * the API take. What each does is in the file of its name; cli.ts runs it.
 */

import type { CommandSpec, Option } from "./command-spec.ts";
import { configOption, setupCommands } from "./setup-commands.ts";

/** What `get` lists: the API's own names. */
export const kinds = ["backends", "watches", "clients", "locks", "certificates", "incidents"] as const;
export type Kind = (typeof kinds)[number];

export const shells = ["bash", "zsh", "fish"] as const;

const admin: Option = {
  name: "admin",
  value: "ADDRESS",
  about: "where the JSON API is: host:port, or a URL",
  usual: "what WATCHKEEPER_ADMIN says, or 127.0.0.1:7480",
};
const tokenFile: Option = {
  name: "token-file",
  value: "FILE",
  about: "a bearer token, for an API that asks",
  usual: "WATCHKEEPER_TOKEN_FILE, or none",
};
const caFile: Option = {
  name: "ca-file",
  value: "FILE",
  about: "who vouches for an https:// ADDRESS",
  usual: "WATCHKEEPER_CA_FILE, or this machine's authorities",
};
/** What leads to the API. */
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
  about: "a reason, for the proxy's log",
  usual: "none",
};
const plainOutput: Option = {
  ...output,
  choices: ["table", "json"],
  about: "table or json",
};

export const commands = {
  demo: {
    summary: "show it at work, no cluster needed",
    words: "",
    options: [
      {
        name: "port",
        value: "N",
        about: "where the demo's proxy listens",
        usual: "8443, or any if that is taken",
      },
      { name: "once", about: "end when the story is told" },
      {
        name: "faults",
        value: "LIST",
        about: "which it plays, of hole, freeze and restart, with commas between them; none for none",
        usual: "all of them",
      },
    ],
    exits: "1: it could not be played, or watchkeeper's client felt a fault",
  },
  incident: {
    summary: "tell one of five incidents while it happens, without watchkeeper and with it",
    words: "000|001|002|003|004",
    choices: ["000", "001", "002", "003", "004"],
    options: [],
    exits: "1: something did not hold with watchkeeper, or it could not be played",
    examples: ["watchkeeper incident 004"],
  },
  run: {
    summary: "serve, as a configuration file says",
    words: "",
    options: [
      configOption,
      { name: "pid-file", value: "FILE", about: "where its process id is written", usual: "nowhere" },
    ],
    exits: "1: it ended for a fault of its own",
  },
  ...setupCommands,
  status: {
    summary: "one screen: backends, watches, what is wrong",
    words: "",
    options: [...reach, plainOutput],
    exits: "1: an incident is active, or no backend is ready",
  },
  get: {
    summary: "list backends, watches, clients, locks, certificates, incidents",
    words: "KIND [NAME] [COLUMN=VALUE]...",
    choices: kinds,
    options: [
      ...reach,
      output,
      {
        name: "query",
        short: "q",
        value: "TEXT",
        about: "only rows with this in a text column",
        usual: "all",
      },
      {
        name: "sort",
        value: "COLUMN",
        about: 'by which column; largest first with "-" before it (--sort=-bytes)',
        usual: "as docs/admin-api.md says",
      },
      { name: "limit", value: "N", about: "rows at most, up to 50000", usual: "100" },
      { name: "no-headers", about: "rows alone" },
    ],
    exits: "1: there is nothing of that NAME",
    examples: [
      "watchkeeper get watches backend=cp-2 state=hung",
      "watchkeeper get clients --sort=-relists --limit 10",
      "watchkeeper get locks -o json | jq '.items[] | select(.verdict != \"ok\")'",
    ],
  },
  explain: {
    summary: "say what proves an incident, step by step",
    words: "[INCIDENT]",
    options: [...reach, plainOutput],
    exits: "1: there is no such incident",
    examples: ["watchkeeper explain 42", "watchkeeper explain"],
  },
  top: {
    summary: "who does how much, again and again",
    words: "[watches|clients]",
    choices: ["watches", "clients"],
    options: [
      ...reach,
      plainOutput,
      { name: "once", about: "measure once, print it, and end" },
      { name: "interval", value: "SECONDS", about: "between two looks, from 1 to 60", usual: "2" },
      { name: "rows", value: "N", about: "how many of them, up to 500", usual: "20" },
    ],
  },
  tap: {
    summary: "what happens, as it happens",
    words: "[KIND]",
    options: [
      ...reach,
      plainOutput,
      { name: "for", value: "SECONDS", about: "end after so long: up to 86400", usual: "a signal ends it" },
    ],
    examples: [
      "watchkeeper tap",
      "watchkeeper tap backend. --for 60",
      "watchkeeper tap exchange. -o json | jq .path",
    ],
  },
  drain: {
    summary: "let a backend go: nothing new, its watches move at leisure, exec stays",
    words: "BACKEND",
    options: [...reach, reason],
    exits: "1: there is no such backend, or no other one is ready",
    examples: ["watchkeeper drain cp-2 --reason 'kernel update'", "watchkeeper undrain cp-2"],
  },
  undrain: {
    summary: "take a drained backend back",
    words: "BACKEND",
    options: [...reach, reason],
    exits: "1: there is no such backend",
  },
  move: {
    summary: "send one watch to another backend, unseen by its client",
    words: "AUDIT-ID",
    options: [...reach, reason],
    exits: "1: there is no such watch, or it cannot be moved now",
  },
  reload: {
    summary: "have the configuration read again",
    words: "",
    options: [...reach, reason],
    exits: "1: it was not taken, and the last good one stays",
  },
  bundle: {
    summary: "write what the proxy knows to a file, for a bug report",
    words: "",
    options: [
      ...reach,
      {
        name: "to",
        value: "PATH",
        about: "a .tar file, or a folder that is not there yet",
        usual: "watchkeeper-TIME.tar",
      },
      { name: "metrics", value: "ADDRESS", about: "where metrics are", usual: "127.0.0.1:7481" },
      { name: "names", about: "keep names and addresses, which are replaced else" },
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
