/** What a reload cannot take up: parts that hold from the next start only. Pure. */
import type { Config } from "./config.ts";

/** What is fixed when the process starts, by its names in the file. */
function fixedParts({ upstream, watches, health, admin, logging }: Config): Record<string, unknown> {
  const { lanes, sharing } = upstream;
  return { "upstream.lanes": lanes, "upstream.sharing": sharing, watches, health, admin, logging };
}

/** Which of those differ between the two. */
export function changedParts(before: Config, after: Config): readonly string[] {
  const [was, is] = [fixedParts(before), fixedParts(after)];
  return Object.keys(is).filter((name) => JSON.stringify(was[name]) !== JSON.stringify(is[name]));
}
