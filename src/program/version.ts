import { readFileSync } from "node:fs";
import { ownFile } from "./own-files.ts";

export function ownVersion(): string {
  const text = readFileSync(ownFile("../package.json"), "utf8");
  return /"version": "([^"]+)"/.exec(text)?.[1] ?? "unknown";
}
