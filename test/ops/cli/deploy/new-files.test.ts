import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../../src/base/failure.ts";
import { writeNewFiles } from "../../../../src/ops/cli/deploy/new-files.ts";

const test = suite("ops/cli/deploy/new-files");
const directory = mkdtempSync(join(tmpdir(), "new-files-"));
const at = (name: string): string => join(directory, name);

test.after(() => rmSync(directory, { recursive: true, force: true }));

test("files and their directory are their owner's alone", () => {
  assert.is(writeNewFiles([{ path: at("a/b"), text: "secret" }]), undefined);
  assert.is(statSync(at("a/b")).mode & 0o777, 0o600);
  assert.is(statSync(at("a")).mode & 0o777, 0o700);
});

test("nothing is overwritten, and then nothing is written at all", () => {
  writeFileSync(at("there"), "old");
  const failure = writeNewFiles([
    { path: at("fresh"), text: "new" },
    { path: at("there"), text: "new" },
  ]);
  assert.instance(failure, Failure);
  assert.match(failure?.message ?? "", "there");
  assert.is(readFileSync(at("there"), "utf8"), "old");
  assert.not.ok(existsSync(at("fresh")));
});

test("a link to nowhere is not followed, and what was written before it goes again", () => {
  symlinkSync(at("elsewhere"), at("link"));
  const failure = writeNewFiles([
    { path: at("fresh"), text: "new" },
    { path: at("link"), text: "new" },
  ]);
  assert.match(failure?.message ?? "", "EEXIST");
  assert.equal([existsSync(at("elsewhere")), existsSync(at("fresh"))], [false, false]);
});

test("a directory that cannot be is an error, also where the kernel says that its parent is not there", () => {
  // Runs in another process, because Node's recursive mkdir never returns for this path.
  const text = `import { writeNewFiles } from "./src/ops/cli/deploy/new-files.ts";
    console.log(writeNewFiles([{ path: "/proc/x/y/z", text: "" }]).message);`;
  const { stdout, status } = spawnSync(process.execPath, ["--input-type=module-typescript", "-e", text], {
    encoding: "utf8",
    timeout: 10_000,
  });
  assert.is(status, 0);
  assert.is(stdout, "Nothing was written: ENOENT: no such file or directory, mkdir '/proc/x'\n");
  assert.is(writeNewFiles([{ path: at("deep/er/still"), text: "x" }]), undefined);
  assert.is(statSync(at("deep")).mode & 0o777, 0o700);
});

test.run();
