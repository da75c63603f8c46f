/** Everything that reads what strangers wrote, by the name that `npm run fuzz` takes. */
import type { Target } from "./target.ts";

export const targetNames = ["frames", "hpack", "fields", "h1", "events", "config", "proxy"] as const;
/** The maze is for the fuzzer's own test. */
export type TargetName = (typeof targetNames)[number] | "maze";

/** Imported when it is wanted, and after V8 was told to count. */
export async function targetOf(name: TargetName): Promise<Target> {
  const file = name === "maze" ? "./maze.ts" : `./targets/${name}.ts`;
  const found = (await import(file)) as Record<TargetName, Target>;
  return found[name];
}
