/** All code that parses untrusted input, by the name that `npm run fuzz` takes. */
import type { Target } from "./target.ts";

export const targetNames = ["frames", "hpack", "fields", "h1", "events", "config", "proxy"] as const;
/** The maze is a target for the fuzzer's own test. */
export type TargetName = (typeof targetNames)[number] | "maze";

/** Imports the target. Call it after V8 has started to count coverage. */
export async function targetOf(name: TargetName): Promise<Target> {
  const file = name === "maze" ? "./maze.ts" : `./targets/${name}.ts`;
  const found = (await import(file)) as Record<TargetName, Target>;
  return found[name];
}
