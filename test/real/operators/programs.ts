/** The programs of the operators: built into the cache when a run needs them. */
import { fileURLToPath } from "node:url";
import { type Built, inJava, inRust, runTool } from "../rig/built.ts";
import { has, lacking, type Program, pathOf, pythonPath } from "../rig/parts.ts";

function here(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

/** By build.ts, as all Go programs and the Python client are. */
function byBuild(what: Program | "python", tool: string): string | undefined {
  if (lacking(what) === undefined) return undefined;
  if (!has(tool)) return tool;
  runTool(process.execPath, [here("../build.ts"), what], here("."));
  return undefined;
}

export function goOperator(program: Program): Built {
  return { prepare: () => byBuild(program, "go"), command: () => [pathOf(program)] };
}

export const pythonOperator: Built = {
  prepare: () => byBuild("python", "python3"),
  command: () => [pythonPath(), here("./python/task_operator.py")],
};

export const nodeOperator: Built = {
  prepare: () => undefined,
  command: () => [process.execPath, here("./node-operator.ts")],
};

export const rustOperator = inRust({ name: "rust-operator", sources: here("./rust") }, "kube-rs-operator");

export function javaOperator(name: "fabric8" | "official", main: string): Built {
  return inJava({ name: `java-${name}-operator`, sources: here(`./java/${name}`) }, main);
}
