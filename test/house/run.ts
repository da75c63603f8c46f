/**
 * npm run house [-- --root FOLDER] [--since COMMIT] [--list constants|callbackTypes]
 *
 * Counts the house: lines of each room, tuned constants, callback types, files that one event crosses, words of all
 * Markdown. --root counts another checkout by the same definitions (without its flows, unless it has test/house).
 * --since adds the lines that were moved, added and deleted after that commit. --list prints each one that was counted.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { count, countWords, definitions } from "./count.ts";

const { values } = parseArgs({
  options: { root: { type: "string" }, since: { type: "string" }, list: { type: "string" } },
});
const root = resolve(values.root ?? join(import.meta.dirname, "../.."));
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const git = (...args: string[]): string =>
  execFileSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 26 });

const counts = count(root);
const { page, ...typescript } = counts.lines;
const total = Object.values(typescript).reduce((sum, lines) => sum + lines, 0);
const rooms = Object.entries(typescript).map(([room, lines]) => `${room} ${lines}`);
say(
  `lines (${definitions.lines}): ${total}, of them ${rooms.join(", ")}; page ${page}; tests ${counts.testLines}`,
);
say(`tuned constants (${definitions.constants}): ${counts.constants.length}`);
say(`callback types (${definitions.callbackTypes}): ${counts.callbackTypes.length}`);
const { words, pages } = countWords(root);
say(`words (${definitions.words}): ${words} in ${pages} files`);
if (values.list === "constants" || values.list === "callbackTypes") {
  for (const one of counts[values.list]) say(`  ${one}`);
}
if (values.since !== undefined) say(changesSince(values.since));
const walk = join(root, "test/house/walk.ts");
if (existsSync(walk)) {
  for (const flow of ["get", "watch", "lost"]) {
    const { stdout } = spawnSync(process.execPath, [walk, flow], { encoding: "utf8", timeout: 120_000 });
    say(stdout === "" ? `${flow}: the walk did not end` : stdout.trim());
  }
}

/** Returns one line: how many lines of src and demo were added and deleted in files that stayed, moved, came and went. */
function changesSince(commit: string): string {
  let [added, deleted, moved] = [0, 0, 0];
  for (const row of git("diff", "--numstat", "-M40%", commit, "--", "src", "demo").trim().split("\n")) {
    const [more, less, path = ""] = row.split("\t");
    if (!/\.ts\}?$/.test(path)) continue;
    added += Number(more);
    deleted += Number(less);
    if (path.includes("=>")) moved++;
  }
  return `since ${commit}: ${added} lines added, ${deleted} deleted, ${moved} files moved (a moved line is neither)`;
}
