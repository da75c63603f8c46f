/** Prints the output of commands (data to stdout, messages to stderr), and returns their exit codes. */
import type { Failure } from "../../../base/failure.ts";
import { escapeInvisible } from "../../../base/json.ts";

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

/** Prints a failure. Returns the exit code: 2 usage error, 3 the API is unreachable, 1 any other failure. */
export function failed({ code, message }: Failure, screen: Screen = standardScreen): number {
  screen.complain(`${message}\n`);
  if (code === "backend-lost") return 3;
  return code === "bad-request" ? 2 : 1;
}

export function complain(text: string, code: number, screen: Screen = standardScreen): number {
  screen.complain(`${text}\n`);
  return code;
}

/** Returns the value as JSON, with the characters escaped that a terminal may obey or hide (A53). */
export function json(value: unknown): string {
  return `${escapeInvisible(JSON.stringify(value, undefined, 2), "json")}\n`;
}
