/**
 * watchkeeper as a package installs it: the built program without its source. It starts in half the time of the source,
 * and during a restart clients wait for this start.
 */
import { cpSync, globSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "../../../deploy/release/bundle.ts";
import { onLeave } from "../rig/leave.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "watchkeeper-installed-"));
onLeave(() => rmSync(folder, { recursive: true, force: true }));

for (const name of globSync("*", { cwd: root, exclude: ["src", "demo", "dist", "bin"] }))
  symlinkSync(join(root, name), join(folder, name));
mkdirSync(join(folder, "bin"));
// A copy instead of a link: Node resolves links, and would then find the source beside the program and run it.
cpSync(join(root, "bin/watchkeeper.js"), join(folder, "bin/watchkeeper.js"));
await bundle(join(folder, "dist"));

export const bin = join(folder, "bin/watchkeeper.js");
