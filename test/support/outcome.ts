/** What a test file's process has said and how it ended, as one outcome: nothing that did not run has passed. */

export type Outcome = {
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
};

/** Loaded before each test file, so that what its hooks throw is told. */
export const tells = new URL("./uvu-tells.ts", import.meta.url).href;

/**
 * uvu prints `Passed: n`, `Skipped: n` and at the end `Total: n`, which leaves out the skipped. What is missing from the total
 * has failed, or was never run behind a hook that threw; both with 0, for all that uvu says. A file that dies before that, or
 * in which nothing ran, counts as one failure.
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
