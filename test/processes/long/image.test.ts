/**
 * Runs the steps of the Containerfile one by one in a folder, and starts the result as the image does, without any
 * other Node. The image itself is not built, because its base images come from registries.
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

/** Returns the instructions of the Containerfile, with continued lines joined. */
function instructions(): readonly (readonly [name: string, rest: string])[] {
  const text = readFileSync("deploy/Containerfile", "utf8").replaceAll("\\\n", "");
  return [...text.matchAll(/^([A-Z]+) (.+)$/gm)].map(([, name = "", rest = ""]) => [name, rest]);
}

/** Replaces the folders at the root of the image by those of the test. */
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
  // The image uses the npm and Node of its base image. The test uses those of this machine.
  const own = (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter((one) => !one.endsWith("node_modules/.bin"));
  const image = `image@sha256:${"0".repeat(64)}`;
  const images = { BUILD_IMAGE: image, BASE_IMAGE: image };
  const env = { ...process.env, ...images, PATH: [dirname(process.execPath), ...own].join(delimiter) };
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
