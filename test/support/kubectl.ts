/** The machine's own kubectl, if it has one, kept away from its user's configuration. */
import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const hasKubectl = spawnSync("kubectl", ["version", "--client"]).status === 0;

/** A home of its own: kubectl caches discovery there. */
const home = mkdtempSync(join(tmpdir(), "watchkeeper-kubectl-"));
process.on("exit", () => rmSync(home, { recursive: true, force: true }));
const env = { ...process.env, HOME: home, KUBECONFIG: join(home, "none") };

/** What it printed on both outputs; `input` is its stdin. Never rejects: a failure is text too. */
export function kubectl(args: readonly string[], input = ""): Promise<string> {
  return new Promise((resolve) => {
    const child = execFile("kubectl", args, { env }, (_error, stdout, stderr) => resolve(stdout + stderr));
    child.stdin?.end(input);
  });
}

/** Left running: a watch. The caller kills it. */
export function spawnKubectl(args: readonly string[]): ChildProcess {
  return spawn("kubectl", args, { env, stdio: ["ignore", "pipe", "inherit"] });
}
