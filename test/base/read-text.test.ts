import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../src/base/failure.ts";
import { readText } from "../../src/base/read-text.ts";

const test = suite("read-text");

let directory = "";
test.before.each(() => {
  directory = mkdtempSync(join(tmpdir(), "read-text-"));
});
test.after.each(() => rmSync(directory, { recursive: true }));

function said(name: string): string {
  const outcome = readText(join(directory, name), 10);
  return outcome instanceof Failure ? `Failure: ${outcome.message}` : outcome;
}

test("a text is read up to its limit", () => {
  writeFileSync(join(directory, "a"), "héllo wör".slice(0, 8));
  assert.is(said("a"), "héllo wö");
  writeFileSync(join(directory, "b"), "x".repeat(11));
  assert.is(said("b"), "Failure: is larger than 10 bytes");
});

test("whatever stands in a file's place is told, at once", () => {
  execFileSync("mkfifo", [join(directory, "pipe")]);
  writeFileSync(join(directory, "latin"), Buffer.from([0x61, 0xff]));
  assert.equal(
    ["missing", ".", "pipe", "latin", "a\0b"].map((name) => said(name).slice(0, 40)),
    [
      "Failure: does not exist",
      "Failure: is not a regular file",
      "Failure: is not a regular file",
      "Failure: is not UTF-8 text",
      said("a\0b").slice(0, 40),
    ],
  );
  assert.match(said("a\0b"), /^Failure: /);
});

test.run();
