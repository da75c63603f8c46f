/**
 * Serves the z-pages of Kubernetes' components (k8s.io/component-base/zpages): /statusz, /flagz, /configz, /version.
 */
import type { Config } from "../../config/config.ts";
import { withoutSecrets } from "../events/log.ts";
import { jsonReply, type Reply, type Routes } from "../http/reply.ts";
import type { Times } from "../http/times.ts";

export type ZPageParts = Pick<Times, "now" | "timeOf"> & {
  readonly version: string;
  readonly config: () => Config;
  /** Arguments of the command line, without the program's name. */
  readonly words: readonly string[];
};

const warning =
  "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.";

export function zPages(parts: ZPageParts): Routes {
  const { now, timeOf, version, config, words } = parts;
  const startedAt = now();
  const pages = new Map<string, () => Reply>([
    ["/statusz", () => text("statusz", statusOf())],
    ["/flagz", () => text("flagz", [...flagsIn(process.execArgv), ...flagsIn(words)])],
    ["/configz", () => jsonReply(200, redacted(config().written))],
    ["/version", () => jsonReply(200, { version, node: process.version, platform: platform() })],
  ]);
  function statusOf(): string[] {
    const { name, file } = config();
    return [
      `Started: ${timeOf(startedAt)}`,
      `Up: ${spanOf(now() - startedAt)}`,
      `Node version: ${process.version}`,
      `Binary version: ${version}`,
      `Configuration: ${file} (${name})`,
      `Paths: ${[...pages.keys(), "/api/v1/", "/openapi.json"].join(" ")}`,
    ];
  }
  return (path) => pages.get(path);
}

function platform(): string {
  return `${process.platform}/${process.arch}`;
}

function text(page: string, lines: readonly string[]): Reply {
  const body = ["", `watchkeeper ${page}`, warning, "", ...lines.map(withoutSecrets), ""].join("\n");
  return { status: 200, type: "text/plain; charset=utf-8", text: body };
}

const isOption = (word: string): boolean => /^--?\w/.test(word);

/** Returns the arguments as /flagz shows them: "--config", "a.yaml" becomes "config=a.yaml". */
function flagsIn(words: readonly string[]): string[] {
  return words.flatMap((word, at) => {
    const before = words[at - 1] ?? "";
    if (!isOption(word)) return isOption(before) && !before.includes("=") ? [] : [word];
    const next = words[at + 1] ?? "";
    const name = word.replace(/^-+/, "");
    if (word.includes("=")) return [name];
    return [next === "" || isOption(next) ? `${name}=true` : `${name}=${next}`];
  });
}

const two = (count: number): string => String(count).padStart(2, "0");

/** Returns a duration as the apiserver formats it: "3 hr 04 min 12 sec". */
function spanOf(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 3600)} hr ${two(Math.floor(seconds / 60) % 60)} min ${two(seconds % 60)} sec`;
}

/** Replaces passwords and tokens in names and URLs. A configuration contains them only by mistake. */
function redacted(value: unknown): unknown {
  if (typeof value === "string") return withoutSecrets(value.replace(/\/\/[^/]*@/, "//[redacted]@"));
  if (Array.isArray(value)) return value.map(redacted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, redacted(one)]));
}
