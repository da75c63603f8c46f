import { execFileSync, spawnSync } from "node:child_process";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { allCommands } from "../../../src/ops/cli/commands/commands.ts";
import { completion } from "../../../src/ops/cli/completion.ts";
import { KeptScreen } from "../../support/api-server.ts";

const test = suite("ops/cli/completion");

async function printed(...args: string[]): Promise<KeptScreen & { readonly code: number }> {
  const screen = new KeptScreen();
  return Object.assign(screen, { code: await completion(args, screen) });
}

/** Returns what bash offers as completions of the last of these words. */
async function offered(...words: string[]): Promise<readonly string[]> {
  const { out } = await printed("bash");
  const list = words.map((word) => `'${word}'`).join(" ");
  const script = `${out}\nCOMP_WORDS=(${list})\nCOMP_CWORD=${words.length - 1}\n_watchkeeper\nprintf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync("bash", ["-c", script]).toString().trim().split("\n");
}

test("bash offers commands, then their words and options, then what an option may be", async () => {
  assert.equal(await offered("watchkeeper", "st"), ["status"]);
  assert.equal(await offered("watchkeeper", ""), [...allCommands.map(([name]) => name), "help"]);
  assert.equal(await offered("watchkeeper", "get", "w"), ["watches"]);
  assert.equal(await offered("watchkeeper", "get", "watches", "--no"), ["--no-headers"]);
  assert.equal(await offered("watchkeeper", "get", "watches", "-o", ""), [
    "table",
    "wide",
    "json",
    "yaml",
    "name",
  ]);
  assert.equal(await offered("watchkeeper", "check", "--config", "package.j"), ["package.json"]);
});

for (const [shell, check] of [
  ["bash", ["-n"]],
  ["zsh", ["-n"]],
  ["fish", ["--no-execute"]],
] as const) {
  test(`${shell} can read its script, and every command is in it`, async () => {
    const { out, code } = await printed(shell);
    assert.is(code, 0);
    for (const [name] of allCommands) assert.match(out, new RegExp(`\\b${name}\\b`));
    const { error, status, stderr } = spawnSync(shell, [...check], { input: out });
    if (error !== undefined) process.stdout.write(`skip: no ${shell} here\n`);
    else assert.equal([status, stderr.toString()], [0, ""]);
  });
}

test("a shell has to be named, and one of the three", async () => {
  assert.is((await printed()).code, 2);
  assert.is((await printed("tcsh")).code, 2);
});

test.run();
