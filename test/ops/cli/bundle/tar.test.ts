import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { tarOf } from "../../../../src/ops/cli/bundle/bundle.ts";

const test = suite("ops/cli/bundle/tar");

const files = [
  { name: "a/one.txt", text: "x".repeat(512) },
  { name: "a/two.json", text: '{"ä":1}\n' },
  { name: "a/empty", text: "" },
];

test("the system's tar takes it apart into the same files", () => {
  const folder = mkdtempSync(join(tmpdir(), "watchkeeper-tar-"));
  try {
    writeFileSync(join(folder, "x.tar"), tarOf(files, Date.parse("2026-11-22T12:00:00Z")));
    execFileSync("tar", ["-xf", "x.tar"], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
    for (const { name, text } of files) assert.is(readFileSync(join(folder, name), "utf8"), text, name);
    const listed = execFileSync("tar", ["-tvf", "x.tar"], {
      cwd: folder,
      env: { ...process.env, TZ: "UTC" },
    });
    assert.match(listed.toString(), /^-rw------- .* 512 2026-11-22 12:00 a\/one\.txt$/m);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("it is whole blocks, and a name that it cannot hold is refused", () => {
  assert.is(tarOf(files, 0).length % 512, 0);
  assert.is(tarOf([], 0).length, 1024);
  assert.throws(() => tarOf([{ name: "n".repeat(101), text: "" }], 0), RangeError);
});

test.run();
