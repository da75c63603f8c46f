/**
 * Do the tests of rows A39 to A50 see anything? Each guard is taken out of the sources in turn (guards/table.ts), and the
 * test that stands for it must fail, by the title that is named; with the guard in its place it passes.
 * One row: `GUARD="a dot" npm run test:guards`.
 */
import { spawn } from "node:child_process";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Mutation } from "../../simulation/mutated.ts";
import { type Guard, guards } from "../guards/table.ts";

const test = suite("processes/guards");

const hook = new URL("../guards/remove.ts", import.meta.url).href;
const killMs = 120_000;
const wanted = process.env["GUARD"] ?? "";

type Run = { readonly code: number | null; readonly said: string };

function run(file: string, removed: readonly Mutation[]): Promise<Run> {
  // By the environment, so that a proxy in a process of its own is without the guard too.
  const child = spawn(process.execPath, [file], {
    env: { ...process.env, NODE_OPTIONS: `--import ${hook}`, REMOVED: JSON.stringify(removed) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
  // A test that hangs without its guard has seen it too, but has not said by which title.
  const timer = setTimeout(() => child.kill("SIGKILL"), killMs);
  return new Promise((resolve) =>
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ code, said });
    }),
  );
}

/** Titles of the tests that failed. uvu writes in colours when it pleases. */
function failuresIn(said: string): string[] {
  return [...said.matchAll(/FAIL\S*\s.*?"(.*)"/g)].map((match) => match[1] ?? "");
}

const meant = guards.filter(({ row, without }) => `${row}: ${without}`.includes(wanted));

for (const file of new Set(meant.map((guard) => guard.test)))
  test(`with every guard in its place ${file} passes`, async () => {
    const { code, said } = await run(file, []);
    assert.is(code, 0, said.slice(-2000));
  });

for (const { row, without, removal, test: file, fails } of meant)
  test(`${row}: it is seen that without it ${without}`, async () => {
    const removals = [removal].flat();
    const { code, said } = await run(file, removals);
    assert.is.not(code, 97, said);
    assert.is.not(code, 0, `${file} passes without ${removals.map(({ find }) => find).join(" and ")}`);
    const failed = failuresIn(said);
    assert.ok(
      failed.some((title) => title.includes(fails)),
      `"${fails}" is not among those that failed: ${JSON.stringify(failed)}\n${said.slice(-1500)}`,
    );
  });

test("every row from A39 to A50 has a guard here", () => {
  const rows = new Set(guards.flatMap(({ row }: Guard) => row.split(", ")));
  const missing = Array.from({ length: 12 }, (_, at) => `A${39 + at}`).filter((row) => !rows.has(row));
  assert.equal(missing, []);
});

test.run();
