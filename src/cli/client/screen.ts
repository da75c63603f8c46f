/** Output and exit of a command: data to stdout, messages to stderr. */
import type { Failure } from "../../base/failure.ts";
import type { CommandName } from "../commands/commands.ts";
import { type Given, given } from "../commands/options.ts";
import { AdminClient, exitOf } from "./admin-client.ts";

export type Screen = {
  readonly print: (text: string) => void;
  readonly complain: (text: string) => void;
  readonly env: NodeJS.ProcessEnv;
  /** Height of the terminal in lines; 0 for a file or a pipe. */
  readonly lines: number;
};

export const standardScreen: Screen = {
  print: (text) => void process.stdout.write(text),
  complain: (text) => void process.stderr.write(text),
  env: process.env,
  get lines() {
    return process.stdout.isTTY ? process.stdout.rows : 0;
  },
};

/** Prints the reason and returns the exit code. */
export function failed(failure: Failure, screen: Screen): number {
  screen.complain(`${failure.message}\n`);
  return exitOf(failure);
}

/** A command that reads the API, with its parsed arguments and its client. */
export function begun(
  name: CommandName,
  args: readonly string[],
  screen: Screen,
): { readonly options: Given; readonly client: AdminClient } | Failure {
  const options = given(name, args);
  if (!("words" in options)) return options;
  const files = { token: options.text("token-file"), ca: options.text("ca-file") };
  const client = AdminClient.at(options.text("admin"), screen.env, files);
  return client instanceof AdminClient ? { options, client } : client;
}

export function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
