/** Runs a test file in a process of its own, over sources with faults in them. */
import { spawn } from "node:child_process";
import type { Mutation } from "../simulation/mutated.ts";
import { outcomeOf, tells } from "../support/outcome.ts";

const hook = new URL("../processes/guards/remove.ts", import.meta.url).href;
const killMs = 120_000;
/** Exit code of remove.ts if a piece of source does not occur exactly once. */
const misfit = 97;

/** Returns the path of a test that a table names by its path below test/, without an extension. */
export const fileOf = (name: string): string => `test/${name}.test.ts`;

export type Played = {
  readonly passed: boolean;
  readonly isMisfit: boolean;
  /** Titles of the tests that failed. */
  readonly failed: readonly string[];
  readonly said: string;
};

/**
 * Runs a test file with these faults, or unchanged without any. A test that hangs is killed: it has detected the fault,
 * but no title shows that.
 */
export function play(file: string, mutations: readonly Mutation[]): Promise<Played> {
  // Passed in the environment, so that a proxy in a child process has the faults, too.
  const child = spawn(process.execPath, ["--expose-gc", "--import", tells, file], {
    env: {
      ...process.env,
      FORCE_COLOR: "0",
      NODE_OPTIONS: `--import ${hook}`,
      REMOVED: JSON.stringify(mutations),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
  const timer = setTimeout(() => child.kill("SIGKILL"), killMs);
  return new Promise((resolve) =>
    child.on("close", (code) => {
      clearTimeout(timer);
      const failed = [...said.matchAll(/FAIL\S*\s.*?"(.*)"/g)].map(([, title = ""]) => title);
      // uvu exits with 0 if a hook throws and no test runs, so the exit code alone does not show a failure.
      const passed = outcomeOf(file, said, code).failed === 0;
      resolve({ passed, isMisfit: code === misfit, failed, said });
    }),
  );
}
