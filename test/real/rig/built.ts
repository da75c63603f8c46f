/**
 * Programs that are built into the cache when they are first needed. Lock files, POM files and go.mod pin their
 * versions.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder, goFolder, has, hashOf, lacking, type Program } from "./parts.ts";

export type Built = {
  /** Builds what is not in the cache. Returns what this machine lacks for the build, or undefined. */
  readonly prepare: () => string | undefined;
  readonly command: () => readonly [command: string, ...args: string[]];
};

/**
 * `name` is the beginning of the folder's name in the cache. `sources` is the folder with the lock file or the POM
 * file.
 */
export type Sources = { readonly name: string; readonly sources: string };

/** Runs a command at low CPU priority. Throws an Error if the exit code is not 0. */
function runTool(command: string, args: readonly string[], cwd: string): void {
  const { status, error } = spawnSync("nice", ["-n", "10", command, ...args], { cwd, stdio: "inherit" });
  if (status !== 0)
    throw new Error(`Cannot run ${command} ${args.join(" ")}: exit ${status}`, { cause: error });
}

function folderOf({ name, sources }: Sources): string {
  return join(cacheFolder(), `${name}-${hashOf(sources, "**/*.{toml,lock,rs,xml,java}")}`);
}

/**
 * Builds the program if it is not in the cache. `make` builds into a temporary folder, which is renamed when the build
 * is complete. Returns the first of `tools` that this machine lacks, or undefined.
 */
function prepared(
  from: Sources,
  tools: readonly string[],
  make: (folder: string) => void,
): string | undefined {
  const folder = folderOf(from);
  if (existsSync(folder)) return undefined;
  const missing = tools.find((tool) => !has(tool));
  if (missing !== undefined) return missing;
  const aside = `${folder}.${process.pid}`;
  mkdirSync(aside, { recursive: true });
  make(aside);
  renameSync(aside, folder);
  return undefined;
}

export function inRust(from: Sources, binary: string): Built {
  return {
    prepare: () =>
      prepared(from, ["cargo"], (folder) => {
        const target = join(folder, "target");
        runTool("cargo", ["build", "--release", "--locked", "--target-dir", target], from.sources);
        copyFileSync(join(target, "release", binary), join(folder, binary));
        rmSync(target, { recursive: true });
      }),
    command: () => [join(folderOf(from), binary)],
  };
}

export function inJava(from: Sources, main: string): Built {
  return {
    prepare: () =>
      prepared(from, ["mvn", "java"], (folder) => {
        const args = ["--quiet", "--batch-mode", `-Dtarget=${folder}`, "process-classes"];
        runTool("mvn", args, from.sources);
      }),
    command: () => {
      const folder = folderOf(from);
      const small = ["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
      return ["java", ...small, "-cp", `${join(folder, "classes")}:${join(folder, "lib")}/*`, main];
    },
  };
}

/**
 * Builds a Go program or the Python client with build.ts. Returns the tool that this machine lacks for it, or
 * undefined.
 */
export function byBuild(what: Program | "python", tool: string): string | undefined {
  if (lacking(what) === undefined) return undefined;
  if (!has(tool)) return tool;
  const script = fileURLToPath(new URL("../build.ts", import.meta.url));
  runTool(process.execPath, [script, what], goFolder);
  return undefined;
}
