import { globSync, readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pageRoutes } from "../../../../src/ops/admin/http/page-files.ts";
import type { Reply } from "../../../../src/ops/admin/http/reply.ts";

const test = suite("ops/admin/http/page-files");
const routes = pageRoutes();

async function asked(path: string): Promise<Reply> {
  const reply = await routes(path)?.("");
  if (reply === undefined) throw new Error(`${path} is not there`);
  return reply;
}

test("the page and everything that it imports are there", async () => {
  const index = String((await asked("/")).text);
  const named = [...index.matchAll(/(?:href|src)="(\/page\/[^"]+)"|: "(\/page\/[^"]+)"/g)];
  const paths = named.map((match) => match[1] ?? match[2] ?? "");
  assert.ok(paths.length >= 6);
  for (const path of paths) assert.is((await asked(path)).status, 200, path);
  const modules = globSync("src/ops/page/**/*.js").map((file) => file.replace("src/ops", ""));
  for (const path of modules) assert.is((await asked(path)).type, "text/javascript; charset=utf-8", path);
});

test("nothing beside the page's own files can be asked for (A53)", () => {
  for (const path of [
    "/page/",
    "/page/../main.ts",
    "/page/tsconfig.json",
    "/page/data/rows.d.ts",
    "/page/%2e%2e/main.ts",
  ])
    assert.is(routes(path), undefined, path);
});

test("its policy lets it load and ask nothing but its own port, and run no script of the markup but the one known", async () => {
  const { policy = "", text } = await asked("/");
  for (const part of [
    "default-src 'none'",
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ])
    assert.ok(policy.includes(part), part);
  assert.not.match(policy, /unsafe|\*|https?:/);
  assert.is(String(text).match(/<script/g)?.length, 2, "the import map and the page");
});

test("the page names no other host", () => {
  for (const file of globSync("src/ops/page/*.{js,html,css}")) {
    const hosts = [...readFileSync(file, "utf8").matchAll(/https?:\/\/[^\s"'`)]+/g)].map(([host]) => host);
    assert.equal(
      hosts.filter((host) => !host.startsWith("http://${location.host}")),
      [],
      file,
    );
  }
});

test.run();
