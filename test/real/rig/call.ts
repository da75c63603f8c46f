/** Runs a command-line client until it exits or reaches its time limit. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { onLeave } from "./leave.ts";

export type Output = { readonly code: number | string; readonly out: string; readonly err: string };

export type CallOptions = {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly cwd?: string;
  readonly timeoutMs?: number;
  /** Default time limit of `says`, in milliseconds. */
  readonly saysMs?: number;
};

/** Removes lines about feature gates, which client-go prints first at -v=4. */
function withoutGates(text: string): string {
  return text.replace(/^.*Feature gate default state.*\n/gm, "");
}

/** A running client, with the output so far and a method to wait for more. */
export class Call {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #line: string;
  readonly #saysMs: number;
  readonly ended: Promise<Output>;
  #out = "";
  #err = "";

  constructor(command: string, args: readonly string[], options: CallOptions = {}) {
    this.#saysMs = options.saysMs ?? 15_000;
    this.#line = [command.split("/").at(-1), ...args].join(" ");
    this.#process = spawn(command, args, { env: { ...process.env, ...options.env }, cwd: options.cwd });
    const timeoutMs = options.timeoutMs ?? 60_000;
    const leave = onLeave(() => this.#process.kill("SIGKILL"));
    const timer = setTimeout(() => {
      this.#err += `\nkilled after ${timeoutMs} ms`;
      this.#process.kill("SIGKILL");
    }, timeoutMs);
    this.#process.stdout.on("data", (chunk: Buffer) => (this.#out += chunk.toString()));
    this.#process.stderr.on("data", (chunk: Buffer) => (this.#err += chunk.toString()));
    this.#process.stdin.on("error", () => undefined); // the program may exit without reading its input
    if (options.input !== undefined) this.#process.stdin.end(options.input);
    const { promise, resolve } = Promise.withResolvers<Output>();
    this.ended = promise;
    this.#process.on("error", (error) => (this.#err += error.message));
    this.#process.on("close", (code, signal) => {
      clearTimeout(timer);
      leave();
      resolve({ code: signal ?? code ?? -1, out: this.#out, err: withoutGates(this.#err) });
    });
  }

  write(text: string): void {
    this.#process.stdin.write(text);
  }

  endInput(): void {
    this.#process.stdin.end();
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** Resolves with the output as soon as standard output or standard error matches. */
  async says(pattern: RegExp, timeoutMs = this.#saysMs): Promise<string> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const said = `${this.#out}\n${withoutGates(this.#err)}`;
      if (pattern.test(said)) return said;
      if (Date.now() > deadline || this.#process.exitCode !== null) {
        throw new Error(`${this.#line}: never said ${String(pattern)}, but:\n${said}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

export function call(command: string, args: readonly string[], options: CallOptions = {}): Promise<Output> {
  const running = new Call(command, args, options);
  if (options.input === undefined) running.endInput();
  return running.ended;
}
