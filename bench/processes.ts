/**
 * Starts the processes of the benchmark, pins each to a core, and kills them at the end, even if the benchmark fails.
 * The proxy under measurement has `proxyCore` to itself. All other processes, this one included, run on `loadCore`.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";

export const proxyCore = 0;
export const loadCore = 1;

export type Running = {
  readonly pid: number;
  /** What it has written so far, for the message when something fails. */
  said(): string;
  /** True once it has ended, by itself or not. */
  isOver(): boolean;
  stop(): Promise<void>;
  readonly child: ChildProcess;
};

const alive = new Set<ChildProcess>();

function killAll(): void {
  for (const child of alive) child.kill("SIGKILL");
}
process.on("exit", killAll);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(130));

/** Moves this process off the proxy's core; children inherit the place. */
export function pinSelf(): void {
  const words = ["-acp", String(loadCore), String(process.pid)];
  for (let left = 5; left > 0; left -= 1) {
    try {
      execFileSync("taskset", words, { stdio: "ignore" });
      return;
    } catch (error) {
      // taskset fails if a thread ends after it was listed.
      if (left === 1) throw error;
    }
  }
}

/** Starts a process that dies with this one, even if this one is killed hard. */
export function start(command: readonly string[], core: number, env: NodeJS.ProcessEnv = {}): Running {
  const words = ["--pdeathsig", "KILL", "taskset", "-c", String(core), ...command];
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
      child.kill("SIGKILL");
      await over;
    },
  };
}

/** Runs a process to its end and returns what it wrote; fails when it fails or takes too long. */
export async function finish(command: readonly string[], core: number, limitMs = 120_000): Promise<string> {
  const running = start(command, core);
  running.child.stdin?.end();
  const timer = setTimeout(() => running.child.kill("SIGKILL"), limitMs);
  const code = await new Promise<number | null>((resolve) => running.child.once("close", resolve));
  clearTimeout(timer);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}:\n${running.said()}`);
  return running.said();
}

/** A process and its children, without those that have just gone. */
function treeOf(pid: number): number[] {
  if (!existsSync(`/proc/${pid}/stat`)) return [];
  const tasks = readdirSync(`/proc/${pid}/task`);
  const children = tasks.flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(treeOf)];
}

/** What the whole machine has computed so far, ours and others' alike. */
export function machineMs(): number {
  // cpu  user nice system idle iowait irq softirq steal ...
  const [, user, nice, system, , , irq, softirq, steal] = readFileSync("/proc/stat", "utf8").split(/ +/, 9);
  return [user, nice, system, irq, softirq, steal].reduce((sum, word) => sum + Number(word), 0) * 10;
}

/** What this benchmark has computed so far: its processes, and those that have ended. */
export function ownMs(): number {
  const words = readFileSync("/proc/self/stat", "utf8").split(") ").at(-1)?.split(" ") ?? [];
  return cpuMs(process.pid) + (Number(words[13]) + Number(words[14])) * 10;
}

/** User and system time of a process and its children so far. The kernel counts it in ticks of 10 ms. */
export function cpuMs(pid: number): number {
  let ticks = 0;
  for (const each of treeOf(pid)) {
    // The name in parentheses may hold spaces; utime and stime are the 12th and 13th words after it.
    const words = readFileSync(`/proc/${each}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    ticks += Number(words[11]) + Number(words[12]);
  }
  return ticks * 10;
}

/** The same in nanosecond steps, for spans in which ticks are too coarse; threads that ended are not in it. */
/** CPU time of a process' main thread so far, where Node's event loop is. */
export function mainThreadMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}

export function threadsMs(pid: number): number {
  let ns = 0;
  for (const each of treeOf(pid))
    for (const task of readdirSync(`/proc/${each}/task`))
      ns += Number(readFileSync(`/proc/${each}/task/${task}/schedstat`, "utf8").split(" ")[0]);
  return ns / 1e6;
}

/** Resident memory of a process and its children. */
export function rssKb(pid: number): number {
  return treeOf(pid).reduce((sum, each) => {
    const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${each}/status`, "utf8"));
    return sum + Number(match?.[1] ?? 0);
  }, 0);
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Shown while it runs; the tables alone go to stdout. */
export function progress(text: string): void {
  process.stderr.write(text);
}
