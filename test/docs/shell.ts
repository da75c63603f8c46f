/**
 * A folder in which a page's commands run as its reader would run them. The repository's files are in the folder, and
 * `watchkeeper` is on the PATH. What a command writes to /etc, /run or /usr/bin goes into the folder instead.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";

export type Words = readonly (readonly [said: RegExp, meant: string])[];
export type ShellSaid = { readonly code: number | string; readonly text: string };

/** Maximum run time, in ms, of a command that ends by itself. No command takes so long, even on a busy machine. */
const endsWithinMs = 120_000;

export class Shell {
  readonly folder = mkdtempSync(join(tmpdir(), "watchkeeper-page-"));
  readonly #words: Words;
  readonly #env: NodeJS.ProcessEnv;
  readonly #running = new Set<ChildProcess>();

  /** `words`: replacements for placeholders and addresses on the page, as a reader would make them. */
  constructor(words: Words = [], env: NodeJS.ProcessEnv = {}) {
    this.#words = words;
    const repository = readdirSync(".").filter((name) => !name.startsWith(".") && !name.endsWith(".tgz"));
    for (const name of repository) symlinkSync(resolve(name), join(this.folder, name));
    // Creates the folders that every machine has. `watchkeeper` lies in `own`, because `bin` is a link to the
    // repository's folder.
    for (const path of ["own", "etc/kubernetes/manifests", "etc/systemd/system"])
      mkdirSync(join(this.folder, path), { recursive: true });
    mkdirSync(join(this.folder, ".config/fish/completions"), { recursive: true });
    const program = join(this.folder, "own/watchkeeper");
    writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${resolve("bin/watchkeeper.js")}" "$@"\n`);
    chmodSync(program, 0o755);
    const path = [join(this.folder, "own"), process.env["PATH"]].join(delimiter);
    this.#env = { ...process.env, HOME: this.folder, KUBECONFIG: "", ...env, PATH: path };
  }

  /** Runs the command to its end. */
  async run(text: string): Promise<ShellSaid> {
    const started = this.start(text);
    const timer = setTimeout(() => started.signal("SIGKILL"), endsWithinMs);
    const code = await started.ended;
    clearTimeout(timer);
    return { code, text: started.text() };
  }

  start(text: string): StartedCommand {
    const meant = this.#words.reduce((said, [from, to]) => said.replaceAll(from, to), text);
    const here = meant.replaceAll(/(?<=^|[\s(>])\/(etc|run|usr\/bin)\//g, `${this.folder}/$1/`);
    // The command gets a process group of its own, so that a signal reaches all processes of a pipeline.
    const child = spawn("bash", ["-o", "pipefail", "-c", here], {
      cwd: this.folder,
      env: this.#env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    this.#running.add(child);
    void closed(child).then(() => this.#running.delete(child));
    return startedAs(child);
  }

  remove(): void {
    for (const child of this.#running) signalGroup(child, "SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export type StartedCommand = {
  /** Returns all that the command has written so far to stdout and stderr. */
  text(): string;
  /**
   * Resolves to true as soon as the output matches the pattern. Resolves to false if the command ends before that, or
   * after `withinMs`.
   */
  says(pattern: RegExp, withinMs?: number): Promise<boolean>;
  signal(signal: NodeJS.Signals): void;
  /** Resolves to the command's exit code, or to the signal that ended it. */
  readonly ended: Promise<number | string>;
};

function startedAs(child: ChildProcess): StartedCommand {
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  return {
    text: () => text,
    async says(pattern, withinMs = 30_000) {
      const until = Date.now() + withinMs;
      while (!pattern.test(text) && Date.now() < until && child.exitCode === null)
        await new Promise((done) => setTimeout(done, 20));
      return pattern.test(text);
    },
    signal: (signal) => signalGroup(child, signal),
    ended: closed(child),
  };
}

function closed(child: ChildProcess): Promise<number | string> {
  return new Promise((done) => {
    child.once("close", (code, signal) => done(signal ?? code ?? -1));
  });
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // the process has already ended
  }
}
