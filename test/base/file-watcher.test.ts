import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { watchFiles } from "../../src/base/file-watcher.ts";
import { manualClock } from "../support/clock.ts";

const test = suite("watch-files");

let directory = "";
test.before.each(() => {
  directory = mkdtempSync(join(tmpdir(), "watch-files-"));
});
test.after.each(() => rmSync(directory, { recursive: true }));

type Watching = { readonly look: () => number; readonly stop: () => void };

/** Watches these files. `look` lets two seconds pass and returns the number of changes so far. */
function watching(names: readonly string[]): Watching {
  const clock = manualClock();
  let changes = 0;
  const paths = names.map((name) => join(directory, name));
  const stop = watchFiles(paths, { clock, intervalMs: 1000, onChange: () => changes++ });
  const look = (): number => {
    clock.advance(2000);
    return changes;
  };
  return { look, stop };
}

test("a file that stays as it is causes nothing", () => {
  writeFileSync(join(directory, "a"), "1");
  const { look, stop } = watching(["a"]);
  assert.is(look(), 0);
  stop();
});

test("a write, a rename over the file and its removal are one change each", () => {
  writeFileSync(join(directory, "a"), "1");
  const { look, stop } = watching(["a"]);
  writeFileSync(join(directory, "a"), "2");
  assert.is(look(), 1);
  writeFileSync(join(directory, "a.new"), "3");
  renameSync(join(directory, "a.new"), join(directory, "a"));
  assert.is(look(), 2);
  unlinkSync(join(directory, "a"));
  assert.is(look(), 3);
  stop();
});

test("the swap of a ..data link, as kubelet updates a Secret, is one change for all its files", () => {
  for (const version of ["v1", "v2"]) {
    mkdirSync(join(directory, version));
    for (const name of ["tls.crt", "tls.key"]) writeFileSync(join(directory, version, name), "same");
  }
  symlinkSync("v1", join(directory, "..data"));
  for (const name of ["tls.crt", "tls.key"]) symlinkSync(`..data/${name}`, join(directory, name));
  const { look, stop } = watching(["tls.crt", "tls.key"]);
  symlinkSync("v2", join(directory, "..data_tmp"));
  renameSync(join(directory, "..data_tmp"), join(directory, "..data"));
  assert.is(look(), 1);
  stop();
});

test("a file that is still being written is left until it rests", () => {
  const clock = manualClock();
  const path = join(directory, "a");
  writeFileSync(path, "1");
  let changes = 0;
  const stop = watchFiles([path], { clock, intervalMs: 1000, onChange: () => changes++ });
  for (let part = 0; part < 5; part++) {
    writeFileSync(path, "x".repeat(part + 2));
    clock.advance(part === 0 ? 1000 : 100);
    assert.is(changes, 0);
  }
  clock.advance(100);
  assert.is(changes, 1);
  stop();
});

test("a stopped watch looks no more", () => {
  writeFileSync(join(directory, "a"), "1");
  const { look, stop } = watching(["a"]);
  stop();
  writeFileSync(join(directory, "a"), "2");
  assert.is(look(), 0);
});

test.run();
