import { readFileSync } from "node:fs";

/** Returns the CPU time of `work` in ms. Other processes on the machine do not change it. */
export function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/**
 * Returns how many ms the main thread of a process has waited for a CPU since the process started (proc_pid_schedstat);
 * 0 if the kernel does not count it.
 */
export function waitedBy(pid: number | string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
  } catch {
    return 0;
  }
}
