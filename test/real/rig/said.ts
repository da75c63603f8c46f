/** Reads the proxy's log. */
import { readFileSync } from "node:fs";

export type Said = { readonly ts: number; readonly msg: string } & Readonly<Record<string, unknown>>;

/** Returns every log entry since `at`, in Unix milliseconds. */
export function saidSince(logFile: string, at: number): Said[] {
  if (logFile === "") return [];
  return readFileSync(logFile, "utf8")
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Said)
    .filter(({ ts }) => ts >= at);
}

/** Returns the first entry that says that this backend changed to the state `to`, or undefined. */
export function verdict(said: readonly Said[], backend: string, to: string): Said | undefined {
  return said.find((one) => one.msg === "backend.changed" && one["backend"] === backend && one["to"] === to);
}
