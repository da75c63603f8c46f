import { existsSync, readdirSync, readFileSync } from "node:fs";

/** Returns the ids of a process and its children, without those that have just ended. */
export function processTree(pid: number): number[] {
  if (!existsSync(`/proc/${pid}/stat`)) return [];
  const tasks = readdirSync(`/proc/${pid}/task`);
  const children = tasks.flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(processTree)];
}
