/** CPU usage of processes, and a control group that limits processes to half a core. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { onLeave } from "../rig/leave.ts";

const ticksPerSecond = 100;

/** Returns the seconds of CPU that a process has used (proc_pid_stat(5), utime and stime). */
export function cpuSeconds(pid: number): number {
  const [, rest = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const fields = rest.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/**
 * A control group whose processes may use half a core together. `make` returns undefined if this machine does not allow
 * one.
 */
export class HalfCore {
  readonly #folder: string;
  readonly remove: () => void;

  private constructor(folder: string) {
    this.#folder = folder;
    this.remove = onLeave(() => rmdirSync(folder));
  }

  static make(): HalfCore | undefined {
    const isFirst = existsSync("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    const folder = `/sys/fs/cgroup/${isFirst ? "cpu/" : ""}watchkeeper-skew-${process.pid}`;
    try {
      mkdirSync(folder);
      if (isFirst) writeFileSync(`${folder}/cpu.cfs_quota_us`, "50000");
      else writeFileSync(`${folder}/cpu.max`, "50000 100000");
      return new HalfCore(folder);
    } catch {
      return undefined;
    }
  }

  /** Moves a process with all of its threads into the group. */
  add(pid: number): void {
    writeFileSync(`${this.#folder}/cgroup.procs`, String(pid));
  }
}
