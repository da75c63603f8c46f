import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { watchFiles } from "../src/watch-files.ts";
import { manualClock } from "./support/clock.ts";

const test = suite("watch-files");

let directory = "";
test.before.each(() => {
  directory = mkdtempSync(join(tmpdir(), "watch-files-"));
});
test.after.each(() => rmSync(directory, { recursive: true }));

/** Looks happen when told; a look's stat is real, so each needs a moment. */
async function watching(
  names: readonly string[],
): Promise<{ readonly look: () => Promise<number>; readonly stop: () => void }> {
  const clock = manualClock();
  let changes = 0;
  const paths = names.map((name) => join(directory, name));
  const stop = watchFiles(paths, { clock, intervalMs: 1000, onChange: () => changes++ });
  const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));
  await settle();
  const look = async (): Promise<number> => {
    for (let count = 0; count < 12; count++) {
      clock.advance(100);
      await settle();
    }
    return changes;
  };
  return { look, stop };
}

test("a file that stays as it is causes nothing", async () => {
  writeFileSync(join(directory, "a"), "1");
  const { look, stop } = await watching(["a"]);
  assert.is(await look(), 0);
  stop();
});

test("a write, a rename over the file and its removal are one change each", async () => {
  writeFileSync(join(directory, "a"), "1");
  const { look, stop } = await watching(["a"]);
  writeFileSync(join(directory, "a"), "2");
  assert.is(await look(), 1);
  writeFileSync(join(directory, "a.new"), "3");
  renameSync(join(directory, "a.new"), join(directory, "a"));
  assert.is(await look(), 2);
  unlinkSync(join(directory, "a"));
  assert.is(await look(), 3);
  stop();
});

test("the swap of a ..data link, as kubelet updates a Secret, is one change for all its files", async () => {
  for (const version of ["v1", "v2"]) {
    mkdirSync(join(directory, version));
    for (const name of ["tls.crt", "tls.key"]) writeFileSync(join(directory, version, name), "same");
  }
  symlinkSync("v1", join(directory, "..data"));
  for (const name of ["tls.crt", "tls.key"]) symlinkSync(`..data/${name}`, join(directory, name));
  const { look, stop } = await watching(["tls.crt", "tls.key"]);
  symlinkSync("v2", join(directory, "..data_tmp"));
  renameSync(join(directory, "..data_tmp"), join(directory, "..data"));
  assert.is(await look(), 1);
  stop();
});

test("a file that is still being written is left until it rests", async () => {
  const clock = manualClock();
  const path = join(directory, "a");
  writeFileSync(path, "1");
  let changes = 0;
  const stop = watchFiles([path], { clock, intervalMs: 1000, onChange: () => changes++ });
  const step = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await new Promise((resolve) => setTimeout(resolve, 10));
  };
  await step(0);
  await step(1000);
  for (let part = 0; part < 5; part++) {
    writeFileSync(path, "x".repeat(part + 2));
    await step(part === 0 ? 1000 : 100);
    assert.is(changes, 0);
  }
  await step(100);
  assert.is(changes, 1);
  stop();
});

test("a stopped watch looks no more", async () => {
  writeFileSync(join(directory, "a"), "1");
  const { look, stop } = await watching(["a"]);
  stop();
  writeFileSync(join(directory, "a"), "2");
  assert.is(await look(), 0);
});

test.run();
