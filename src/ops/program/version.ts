import { existsSync, readFileSync } from "node:fs";
import { packageFile } from "./own-files.ts";

export function ownVersion(): string {
  const text = readFileSync(packageFile("package.json"), "utf8");
  return /"version": "([^"]+)"/.exec(text)?.[1] ?? "unknown";
}

/** Returns the image of this release, with its digest. Undefined if the program does not come from a release's archive. */
export function releasedImage(): string | undefined {
  const file = packageFile("image");
  return existsSync(file) ? readFileSync(file, "utf8").trim() : undefined;
}
