/**
 * Starts the processes of the benchmark, pins each to a core, and kills them at the end, even if the benchmark fails.
 * The proxy under measurement has the core `proxyCore` to itself. All other processes, this one included, run on the
 * core `loadCore`. With `--spread`, every process may use every core, to measure the throughput of several workers.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { processTree } from "../test/support/process-tree.ts";

export const proxyCore = 0;
export const loadCore = 1;
const isSpread = process.argv.includes("--spread");
const allCores = `0-${availableParallelism() - 1}`;

export type Running = {
  readonly pid: number;
  /** What the process has written so far, for the message if something fails. */
  said(): string;
  /** True after the process has ended, whether by itself or by a signal. */
  isOver(): boolean;
  stop(): Promise<void>;
  readonly child: ChildProcess;
};

const alive = new Set<ChildProcess>();
/**
 * CPU time, in ms, of the children of processes that were killed, such as watchkeeper's workers. The kernel does not
 * count it for the benchmark, because their parent could not wait for them.
 */
let orphanedMs = 0;

function killAll(): void {
  for (const child of alive) child.kill("SIGKILL");
}
process.on("exit", killAll);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(130));

/** Moves this process off the proxy's core. Its children inherit that. */
export function pinSelf(): void {
  if (isSpread) return;
  const words = ["-acp", String(loadCore), String(process.pid)];
  for (let left = 5; left > 0; left -= 1) {
    try {
      execFileSync("taskset", words, { stdio: "ignore" });
      return;
    } catch (error) {
      // Tries again, because taskset fails if a thread that it has listed ends.
      if (left === 1) throw error;
    }
  }
}

/** Starts a process that dies with this one, even if this one is killed by SIGKILL. */
export function start(command: readonly string[], core: number, env: NodeJS.ProcessEnv = {}): Running {
  const words = ["--pdeathsig", "KILL", "taskset", "-c", isSpread ? allCores : String(core), ...command];
  const child = spawn("setpriv", words, { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, ...env } });
  alive.add(child);
  let said = "";
  const keep = (chunk: Buffer): void => {
    said = (said + chunk.toString()).slice(-20_000);
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  const over = new Promise<void>((resolve) => child.once("close", resolve)).then(() => alive.delete(child));
  return {
    pid: child.pid ?? 0,
    child,
    said: () => said,
    isOver: () => child.exitCode !== null || child.signalCode !== null,
    async stop() {
      orphanedMs += cpuMsOf(processTree(child.pid ?? 0).slice(1));
      child.kill("SIGKILL");
      await over;
    },
  };
}

/** Runs a process to its end and returns its output. Fails if the process fails or runs longer than `limitMs`. */
export async function finish(command: readonly string[], core: number, limitMs = 120_000): Promise<string> {
  const running = start(command, core);
  running.child.stdin?.end();
  const timer = setTimeout(() => running.child.kill("SIGKILL"), limitMs);
  const code = await new Promise<number | null>((resolve) => running.child.once("close", resolve));
  clearTimeout(timer);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}:\n${running.said()}`);
  return running.said();
}

/** Returns the CPU time, in ms, that all processes of this machine have used so far, the benchmark's included. */
function machineMs(): number {
  // The columns: cpu  user nice system idle iowait irq softirq steal ...
  const [, user, nice, system, , , irq, softirq, steal] = readFileSync("/proc/stat", "utf8").split(/ +/, 9);
  return [user, nice, system, irq, softirq, steal].reduce((sum, word) => sum + Number(word), 0) * 10;
}

/** Returns the CPU time, in ms, that this benchmark has used so far, including processes of it that have ended. */
function ownMs(): number {
  const words = readFileSync("/proc/self/stat", "utf8").split(") ").at(-1)?.split(" ") ?? [];
  return cpuMs(process.pid) + (Number(words[13]) + Number(words[14])) * 10 + orphanedMs;
}

/** Starts to count. Returns a function that returns the number of cores that other processes have used since then. */
export function countOthers(): () => number {
  const at = performance.now();
  const ms = machineMs() - ownMs();
  return () => (machineMs() - ownMs() - ms) / (performance.now() - at);
}

/**
 * Returns the user and system CPU time, in ms, of a process and its children so far. The kernel counts it in ticks of
 * 10 ms.
 */
export function cpuMs(pid: number): number {
  return cpuMsOf(processTree(pid));
}

function cpuMsOf(pids: readonly number[]): number {
  let ticks = 0;
  for (const each of pids.filter((pid) => existsSync(`/proc/${pid}/stat`))) {
    // The process name in parentheses may contain spaces. utime and stime are the 12th and 13th words after it.
    const words = readFileSync(`/proc/${each}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    ticks += Number(words[11]) + Number(words[12]);
  }
  return ticks * 10;
}

/** Returns the CPU time, in ms, of a process's main thread so far. Node's event loop runs on that thread. */
export function mainThreadMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}

/**
 * Returns the CPU time, in ms, of a process and its children so far, in steps of nanoseconds, for measurements that are
 * too short for ticks. Does not include threads that have ended.
 */
export function threadsMs(pid: number): number {
  let ns = 0;
  for (const each of processTree(pid))
    for (const task of readdirSync(`/proc/${each}/task`))
      ns += Number(readFileSync(`/proc/${each}/task/${task}/schedstat`, "utf8").split(" ")[0]);
  return ns / 1e6;
}

/** Returns the resident memory, in kB, of a process and its children. */
export function rssKb(pid: number): number {
  return processTree(pid).reduce((sum, each) => {
    const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${each}/status`, "utf8"));
    return sum + Number(match?.[1] ?? 0);
  }, 0);
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Writes to stderr while the benchmark runs, because stdout has only the tables. */
export function progress(text: string): void {
  process.stderr.write(text);
}
