/** Runs a test file over sources with one fault in them, in processes of their own. */
import { spawn } from "node:child_process";
import type { Mutation } from "../simulation/mutated.ts";
import { outcomeOf, tells } from "../support/outcome.ts";

const hook = new URL("../processes/guards/remove.ts", import.meta.url).href;
const killMs = 120_000;
/** How remove.ts ends when a piece is not there exactly once. */
const misfit = 97;

/** Tables name a test by its place below test. */
export const fileOf = (name: string): string => `test/${name}.test.ts`;

export type Played = {
  readonly passed: boolean;
  readonly isMisfit: boolean;
  /** Titles of the tests that failed. */
  readonly failed: readonly string[];
  readonly said: string;
};

/** With none of them the file is played as it is. One that hangs is killed: it has seen the fault, but not said by which title. */
export function play(file: string, mutations: readonly Mutation[]): Promise<Played> {
  // By the environment, so that a proxy in a process of its own has the fault too.
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
      // uvu ends with 0 where a hook has thrown and nothing ran.
      const passed = outcomeOf(file, said, code).failed === 0;
      resolve({ passed, isMisfit: code === misfit, failed, said });
    }),
  );
}
