/** Parses the output and exit code of a test file into counts. A test that did not run counts as failed. */

export type Outcome = {
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
};

/** The module that each test file loads first, so that errors of its hooks are reported. */
export const tells = new URL("./uvu-tells.ts", import.meta.url).href;

/** The words with which `together.ts` begins the lines before and after the output of one file. */
export const began = "== began";
export const ended = "== ended";

/**
 * True if the file changes or measures its process, starts others, or runs for seconds: such a file gets a process of
 * its own. `text` is the file's source.
 */
export function needsOwnProcess(text: string): boolean {
  return /child_process|worker_threads|globalThis|\bgc\(|memoryUsage|cpuUsage|process\.(env|on|once|off|emit|exit|exitCode|chdir|umask|stdout|stderr|argv|execArgv)\b/.test(
    text,
  );
}

/**
 * uvu prints `Passed: n`, `Skipped: n` and at the end `Total: n`, which does not include the skipped tests. A test that
 * is missing from the total has failed, or did not run because a hook threw an error; uvu may exit with 0 in both
 * cases. A file that crashes before it prints a total, or that runs no test, counts as one failure.
 */
export function outcomeOf(file: string, output: string, code: number | null): Outcome {
  const count = (word: string): number =>
    [...output.matchAll(new RegExp(`^ *${word}: +(\\d+)`, "gm"))].reduce(
      (sum, match) => sum + Number(match[1]),
      0,
    );
  const passed = count("Passed");
  const skipped = count("Skipped");
  const missing = count("Total") - passed;
  const failed = code === 0 && passed + skipped > 0 ? missing : Math.max(1, missing);
  return { file, passed, failed, skipped };
}
