/** What the operators are: built into the cache when a run needs it, with the versions that lock files and poms pin. */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder, has, hashOf, lacking, type Program, pathOf, pythonPath } from "../rig/parts.ts";

type Command = readonly [string, ...string[]];

export type Made = {
  /** Builds what is not in the cache. Returns what this machine lacks for it, or undefined. */
  prepare(): string | undefined;
  command(): Command;
};

function here(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

function run(command: string, args: readonly string[], cwd: string): void {
  const { status, error } = spawnSync("nice", ["-n", "10", command, ...args], { cwd, stdio: "inherit" });
  if (status !== 0)
    throw new Error(`Cannot run ${command} ${args.join(" ")}: exit ${status}`, { cause: error });
}

function lackedOf(tools: readonly string[]): string | undefined {
  return tools.find((tool) => !has(tool));
}

/** By build.ts, as all Go programs and the Python client are. */
function byBuild(what: Program | "python", tool: string): string | undefined {
  if (lacking(what) === undefined) return undefined;
  if (!has(tool)) return tool;
  run(process.execPath, [here("../build.ts"), what], here("."));
  return undefined;
}

export function inGo(program: Program): Made {
  return { prepare: () => byBuild(program, "go"), command: () => [pathOf(program)] };
}

export const inPython: Made = {
  prepare: () => byBuild("python", "python3"),
  command: () => [pythonPath(), here("./python/task_operator.py")],
};

export const inNode: Made = {
  prepare: () => undefined,
  command: () => [process.execPath, here("./node-operator.ts")],
};

/** Where the build of the folder `name` is kept: its sources and its pins are part of the name. */
function builtFolder(name: string): string {
  const hash = hashOf(here(`./${name}`), "**/*.{toml,lock,rs,xml,java}");
  return join(cacheFolder(), `${name.replace("/", "-")}-operator-${hash}`);
}

/** `make` builds into a folder that gets its name only when the build is complete. */
function built(
  name: string,
  tools: readonly string[],
  make: (folder: string, sources: string) => void,
): string | undefined {
  const folder = builtFolder(name);
  if (existsSync(folder)) return undefined;
  const missing = lackedOf(tools);
  if (missing !== undefined) return missing;
  const aside = `${folder}.${process.pid}`;
  mkdirSync(aside, { recursive: true });
  make(aside, here(`./${name}`));
  renameSync(aside, folder);
  return undefined;
}

export const inRust: Made = {
  prepare: () =>
    built("rust", ["cargo"], (folder, sources) => {
      const target = join(folder, "target");
      run("cargo", ["build", "--release", "--locked", "--target-dir", target], sources);
      copyFileSync(join(target, "release/kube-rs-operator"), join(folder, "operator"));
      rmSync(target, { recursive: true });
    }),
  command: () => [join(builtFolder("rust"), "operator")],
};

export function inJava(name: "fabric8" | "official", main: string): Made {
  const folder = `java/${name}`;
  return {
    prepare: () =>
      built(folder, ["mvn", "java"], (target, sources) => {
        run("mvn", ["--quiet", "--batch-mode", `-Dtarget=${target}`, "process-classes"], sources);
      }),
    command: () => {
      const at = builtFolder(folder);
      const small = ["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
      return ["java", ...small, "-cp", `${join(at, "classes")}:${join(at, "lib")}/*`, main];
    },
  };
}
