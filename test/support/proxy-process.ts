import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { ChildOptions, ChildPlace, ChildState } from "./proxy-child.ts";
import { within } from "./within.ts";

/** The page size of x86-64 and of most other architectures. */
const pageBytes = 4096;
const file = fileURLToPath(new URL("./proxy-child.ts", import.meta.url));

/** The same values as in bin/watchkeeper.js and deploy/Containerfile. */
const allocator = {
  MALLOC_ARENA_MAX: "2",
  MALLOC_TRIM_THRESHOLD_: "1048576",
  MALLOC_MMAP_THRESHOLD_: "65536",
};

/** A proxy in its own process. */
export class ProxyProcess {
  readonly place: ChildPlace;
  readonly #child: ChildProcess;
  readonly #said: () => string;

  private constructor(child: ChildProcess, place: ChildPlace, said: () => string) {
    this.#child = child;
    this.place = place;
    this.#said = said;
  }

  /**
   * `openFiles` is its limit of file descriptors, `heapMiB` the limit of V8's old space, and `env` holds extra
   * environment variables.
   */
  static async start(
    options: ChildOptions,
    openFiles?: number,
    heapMiB?: number,
    env: Readonly<Record<string, string>> = {},
  ): Promise<ProxyProcess> {
    // The same value as in bin/watchkeeper.js.
    const flags = ["--max-semi-space-size=8"];
    if (heapMiB !== undefined) flags.push(`--max-old-space-size=${heapMiB}`);
    const own = [process.execPath, "--expose-gc", ...flags, file, JSON.stringify(options)];
    const limited = openFiles === undefined ? "" : `ulimit -n ${openFiles};`;
    const child = spawn("sh", ["-c", `${limited} exec "$@"`, "sh", ...own], {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: { ...allocator, ...process.env, ...env },
    });
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (chunk: Buffer) => {
        said += chunk.toString();
      });
    const ended = once(child, "exit").then(() => {
      throw new Error(`The proxy ended: ${said.slice(-2000)}`);
    });
    const [place] = await within(20_000, "the proxy's start", Promise.race([once(child, "message"), ended]));
    ended.catch(() => {});
    return new ProxyProcess(child, place as ChildPlace, () => said);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /**
   * RSS in bytes, read from /proc. Asking the process would force a garbage collection, after which V8 keeps freed
   * memory longer.
   */
  get rssBytes(): number {
    const pages = Number(readFileSync(`/proc/${this.pid}/statm`, "utf8").split(" ")[1]);
    return pages * pageBytes;
  }

  async state(): Promise<ChildState> {
    if (!this.isAlive) throw new Error(`The proxy has died: ${this.#said().slice(-4000)}`);
    const answer = once(this.#child, "message");
    this.#child.send("state");
    const [state] = await within(10_000, "the proxy's state", answer);
    return state as ChildState;
  }

  async stop(): Promise<void> {
    if (!this.isAlive) return;
    const exit = once(this.#child, "exit");
    this.#child.send("stop");
    await within(20_000, "the proxy's end", exit).catch(() => this.#child.kill("SIGKILL"));
  }
}
