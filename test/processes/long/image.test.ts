/**
 * The Containerfile's own steps, taken one by one in a folder, and what they make started as the image starts it, where no other
 * Node can be found. Its base images come from registries, so the image itself is not built.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("long/image");
const directory = mkdtempSync(join(tmpdir(), "watchkeeper-image-"));
test.after(() => rmSync(directory, { recursive: true, force: true }));

const [source, root] = [join(directory, "source"), join(directory, "root")];

/** A Containerfile's instructions, with the lines that a backslash joins. */
function instructions(): readonly (readonly [name: string, rest: string])[] {
  const text = readFileSync("deploy/Containerfile", "utf8").replaceAll("\\\n", "");
  return [...text.matchAll(/^([A-Z]+) (.+)$/gm)].map(([, name = "", rest = ""]) => [name, rest]);
}

/** What the image has at its root is in the root of the test's image. */
function inRoot(text: string): string {
  return text.replaceAll(/(?<=^|[\s"])\/(app|usr)\b/g, `${root}/$1`);
}

function copy(rest: string): void {
  const [target = "", ...names] = rest.split(" ").toReversed();
  for (const name of names) {
    assert.is(spawnSync("git", ["ls-files", "--error-unmatch", name]).status, 0, name);
    cpSync(name, target === "./" ? join(source, name) : join(source, target), { recursive: true });
  }
}

function runStep(rest: string): void {
  // npm and Node are those of the image's base there, and this machine's here.
  const own = (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter((one) => !one.endsWith("node_modules/.bin"));
  const env = { ...process.env, PATH: [dirname(process.execPath), ...own].join(delimiter) };
  const said = spawnSync("sh", ["-ec", inRoot(rest)], { cwd: source, env, timeout: 600_000 });
  assert.is(said.status, 0, `${rest}\n${String(said.stdout)}${String(said.stderr)}`);
}

test("the image's steps make a program that runs, alone, and name all that it is made of", () => {
  for (const folder of [source, join(root, "usr/local/bin")]) mkdirSync(folder, { recursive: true });
  for (const [name, rest] of instructions()) {
    if (name === "COPY" && !rest.startsWith("--from")) copy(rest);
    if (name === "RUN") runStep(rest);
  }
  const [, entry = ""] = instructions().find(([name]) => name === "ENTRYPOINT") ?? [];
  const [command = "", ...first] = JSON.parse(inRoot(entry)) as string[];
  const env = { PATH: "/nonexistent", HOME: "/nonexistent" };
  const demo = spawnSync(command, [...first, "demo", "--once", "--faults", "none", "--port", "0"], { env });
  assert.equal([demo.status, String(demo.stderr)], [0, ""]);
  assert.match(String(demo.stdout), "so far  5 writes, 5 events");
  const sbom = JSON.parse(readFileSync(join(root, "app/sbom.cdx.json"), "utf8")) as {
    readonly components: readonly { readonly name: string }[];
  };
  const parts = sbom.components.map(({ name }) => name);
  assert.ok(parts.includes("ajv") && !parts.includes("typescript"), String(parts));
  assert.ok(!existsSync(join(root, "app/node_modules/typescript")));
});

test.run();
