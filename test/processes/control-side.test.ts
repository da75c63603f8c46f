/** Exceptions that nothing catches, in a whole process: which of them cost one part of the control side only. */
import { spawnSync } from "node:child_process";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("control-side");

type Outcome = {
  readonly faults: readonly string[];
  readonly before: boolean;
  readonly after: boolean;
  readonly code: number;
};

function outcomeOf(...args: readonly string[]): Outcome {
  const { stdout } = spawnSync(process.execPath, ["test/processes/own-faults/throwing.ts", ...args], {
    encoding: "utf8",
    timeout: 60_000,
  });
  return JSON.parse(stdout) as Outcome;
}

test("an exception or rejection of the control side is told as one of its part, and the process does not drain", () => {
  const { faults, before, after, code } = outcomeOf();
  const inDiscovery = ["timer", "immediate", "tick", "microtask", "rejection", "async function"];
  assert.equal(
    faults.toSorted(),
    [
      ...inDiscovery.map((what) => `discovery: ${what}`),
      "admin: request handler",
      "handover: handler of a child process",
      "tracing: handler of a message",
      "promise: rejection in no part",
    ].toSorted(),
  );
  assert.equal([before, after, code], [false, false, 0]);
});

test("an exception of the data path drains the process, also if the control side has opened its socket", () => {
  const { faults, before, after, code } = outcomeOf("data-path");
  assert.is(faults.at(-1), "process: socket of the data path");
  assert.equal([before, after, code], [false, true, 1]);
});

test.run();
