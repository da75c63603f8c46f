import { readFileSync } from "node:fs";

/** Milliseconds of CPU that the work takes, whatever other processes keep the machine busy meanwhile. */
export function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** In ms, of a process' first thread since it began (proc_pid_schedstat); 0 where the kernel does not count it. */
export function waitedBy(pid: number | string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
  } catch {
    return 0;
  }
}
