/**
 * Serves the files of the admin page. All files are read at the start, so that a request's path is never used as a path
 * on disk (A53). The Content-Security-Policy allows the page to load from, and connect to, this port only.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { ownFile } from "../../program/own-files.ts";
import type { Reply, Routes } from "./reply.ts";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/**
 * Files of npm packages for the browser, served unchanged. Each row: path on the admin port, name of the module, and
 * name of the file in the folder of the module's main file.
 */
const packageFiles = [
  ["vendor/htm.js", "htm", "htm.module.js"],
  ["vendor/preact.js", "preact", "preact.mjs"],
  ["vendor/hooks.js", "preact/hooks", "hooks.mjs"],
] as const;

/**
 * Returns routes for the files in src/ops/page whose extension is in `types`; type declarations and settings are not
 * served.
 * @throws {Error} a file is missing, because the package is broken
 */
export function pageRoutes(): Routes {
  const folder = ownFile("src/ops/page");
  const { resolve } = createRequire(import.meta.url);
  const files = new Map<string, Reply>();
  const index = readFileSync(join(folder, "index.html"), "utf8");
  const policy = policyOf(index);
  const add = (path: string, file: string): void => {
    const type = types[extname(path)] ?? "application/octet-stream";
    files.set(path, { status: 200, type, text: readFileSync(file, "utf8"), policy });
  };
  add("/index.html", join(folder, "index.html"));
  for (const name of readdirSync(folder, { encoding: "utf8", recursive: true }))
    if (extname(name) in types && name !== "index.html") add(`/page/${name}`, join(folder, name));
  for (const [name, module, file] of packageFiles) add(`/page/${name}`, join(dirname(resolve(module)), file));
  return (path) => {
    const reply = files.get(path === "/" ? "/index.html" : path);
    return reply === undefined ? undefined : () => reply;
  };
}

/** Returns the Content-Security-Policy. It allows the only inline script, the import map, by its hash. */
function policyOf(index: string): string {
  const [, map = ""] = /<script type="importmap">([^]*?)<\/script>/.exec(index) ?? [];
  const hash = createHash("sha256").update(map).digest("base64");
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash}'`,
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}
