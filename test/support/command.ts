/** Runs the command line tool as a process, and captures its output and exit code. */
import { type ChildProcess, spawn } from "node:child_process";
import { within } from "./within.ts";

const running = new Set<ChildProcess>();

export type Command = {
  readonly child: ChildProcess;
  /** Resolves with the first line of stdout or stderr that contains `word`. */
  said(word: string | RegExp): Promise<string>;
  /** Returns all output so far. */
  text(): string;
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>;
};

export function command(args: readonly string[], env: Readonly<Record<string, string>> = {}): Command {
  const child = spawn(process.execPath, ["bin/watchkeeper.js", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  running.add(child);
  let text = "";
  const looks = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      for (const look of looks) look();
    });
  }
  const line = (word: string | RegExp): string | undefined =>
    text.split("\n").find((one) => (typeof word === "string" ? one.includes(word) : word.test(one)));
  const said = (word: string | RegExp): Promise<string> =>
    new Promise((resolve) => {
      const look = (): void => {
        const found = line(word);
        if (found === undefined) return;
        looks.delete(look);
        resolve(found);
      };
      looks.add(look);
      look();
    });
  const ended = new Promise<number | null>((resolve) => {
    child.once("close", (code) => {
      running.delete(child);
      resolve(code);
    });
  });
  return {
    child,
    text: () => text,
    get ended() {
      return within(40_000, `the end of ${args[0]}`, ended);
    },
    said: (word) =>
      within(50_000, `${String(word)} from ${args[0]}`, said(word)).catch((reason: unknown) => {
        throw new Error(`${String(reason)}; it said: ${text}`);
      }),
  };
}

/** Kills all commands that still run; for `test.after`. */
export function endCommands(): void {
  for (const child of running) child.kill("SIGKILL");
}
