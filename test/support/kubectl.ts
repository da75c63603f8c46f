/** Runs the kubectl of this machine, if there is one, without the configuration of its user. */
import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const hasKubectl = spawnSync("kubectl", ["version", "--client"]).status === 0;

/** A separate home directory, because kubectl caches discovery there. */
const home = mkdtempSync(join(tmpdir(), "watchkeeper-kubectl-"));
process.on("exit", () => rmSync(home, { recursive: true, force: true }));
const env = { ...process.env, HOME: home, KUBECONFIG: join(home, "none") };

/**
 * Resolves with the output of both stdout and stderr. `input` is the stdin. Never rejects: the output includes error
 * messages.
 */
export function kubectl(args: readonly string[], input = ""): Promise<string> {
  return new Promise((resolve) => {
    const child = execFile("kubectl", args, { env }, (_error, stdout, stderr) => resolve(stdout + stderr));
    child.stdin?.end(input);
  });
}

/** Starts kubectl and leaves it running, for watches. The caller kills it. */
export function spawnKubectl(args: readonly string[]): ChildProcess {
  return spawn("kubectl", args, { env, stdio: ["ignore", "pipe", "inherit"] });
}
