/** Programs in Rust and Java: built into the cache when they are first needed, with the versions that lock files and poms pin. */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder, has, hashOf } from "../rig/parts.ts";

export type Built = {
  /** Builds what is not in the cache. Returns what this machine lacks for it, or undefined. */
  readonly prepare: () => string | undefined;
  readonly command: () => readonly [command: string, ...args: string[]];
};

function run(command: string, args: readonly string[], cwd: string): void {
  const { status, error } = spawnSync("nice", ["-n", "10", command, ...args], { cwd, stdio: "inherit" });
  if (status !== 0)
    throw new Error(`Cannot run ${command} ${args.join(" ")}: exit ${status}`, { cause: error });
}

function sourcesOf(name: string): string {
  return fileURLToPath(new URL(`./${name}`, import.meta.url));
}

function folderOf(name: string): string {
  const hash = hashOf(sourcesOf(name), "**/*.{toml,lock,rs,xml,java}");
  return join(cacheFolder(), `${name.replace("/", "-")}-program-${hash}`);
}

/** `make` builds into a folder that gets its name only when the build is complete. */
function prepared(
  name: string,
  tools: readonly string[],
  make: (folder: string, sources: string) => void,
): string | undefined {
  const folder = folderOf(name);
  if (existsSync(folder)) return undefined;
  const missing = tools.find((tool) => !has(tool));
  if (missing !== undefined) return missing;
  const aside = `${folder}.${process.pid}`;
  mkdirSync(aside, { recursive: true });
  make(aside, sourcesOf(name));
  renameSync(aside, folder);
  return undefined;
}

export const inRust: Built = {
  prepare: () =>
    prepared("rust", ["cargo"], (folder, sources) => {
      const target = join(folder, "target");
      run("cargo", ["build", "--release", "--locked", "--target-dir", target], sources);
      copyFileSync(join(target, "release/kube-rs-program"), join(folder, "program"));
      rmSync(target, { recursive: true });
    }),
  command: () => [join(folderOf("rust"), "program")],
};

export function inJava(name: "java/fabric8" | "java/official"): Built {
  return {
    prepare: () =>
      prepared(name, ["mvn", "java"], (folder, sources) => {
        run("mvn", ["--quiet", "--batch-mode", `-Dtarget=${folder}`, "process-classes"], sources);
      }),
    command: () => {
      const folder = folderOf(name);
      const small = ["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
      return ["java", ...small, "-cp", `${join(folder, "classes")}:${join(folder, "lib")}/*`, "Program"];
    },
  };
}
