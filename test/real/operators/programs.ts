/** The programs of the operators. They are built into the cache when a run first needs them. */
import { fileURLToPath } from "node:url";
import { type Built, byBuild, inJava, inRust } from "../rig/built.ts";
import { type Program, pathOf, pythonPath } from "../rig/parts.ts";

function here(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
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
