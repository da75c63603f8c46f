/** What the proxy itself said, and when: its journal, read from its log. */
import { readFileSync } from "node:fs";

export type Said = { readonly ts: number; readonly msg: string } & Readonly<Record<string, unknown>>;

/** Every entry written since `at` (milliseconds since the epoch). */
export function saidSince(logFile: string, at: number): Said[] {
  if (logFile === "") return [];
  return readFileSync(logFile, "utf8")
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Said)
    .filter(({ ts }) => ts >= at);
}

/** The first change of this backend's verdict to `to`, or undefined. */
export function verdict(said: readonly Said[], backend: string, to: string): Said | undefined {
  return said.find((one) => one.msg === "backend.changed" && one["backend"] === backend && one["to"] === to);
}
