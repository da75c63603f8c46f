/** SECURITY.md says what watchkeeper is made of. The lockfile, .npmrc and the files of the release agree with it. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import base from "../deploy/release/base.json" with { type: "json" };

const test = suite("supply-chain");
const read = (file: string): string => readFileSync(file, "utf8");
const [, section = ""] =
  /^## What watchkeeper is made of\n([^]*?)^## /m.exec(
    read("SECURITY.md").replaceAll(/(?<=\S)\n {2,}/g, " "),
  ) ?? [];

type Locked = {
  readonly integrity?: string;
  readonly resolved?: string;
  readonly hasInstallScript?: boolean;
};
const lock: { readonly packages: Readonly<Record<string, Locked>> } = JSON.parse(read("package-lock.json"));
const locked = Object.entries(lock.packages).filter(([path]) => path !== "");

test("every package of the lockfile has an integrity hash and no address", () => {
  assert.ok(locked.length > 100);
  for (const [path, { integrity, resolved }] of locked) {
    assert.match(integrity ?? "", /^sha512-[\w+/]{86}==$/, path);
    assert.is(resolved, undefined, path);
  }
  assert.match(section, "Every package in `package-lock.json` has an integrity hash");
});

test("SECURITY.md names the packages with an install script, and .npmrc forbids install scripts", () => {
  const withScript = locked
    .filter(([, { hasInstallScript }]) => hasInstallScript)
    .map(([path]) => path.replace(/^.*node_modules\//, ""));
  const [, named] = /One package has an install script: `([^`]+)`/.exec(section) ?? [];
  assert.equal(withScript, [named]);
  assert.match(read(".npmrc"), /^ignore-scripts=true$/m);
});

test("SECURITY.md names the packages from which Node comes, and the release takes them as the lockfile pins them", () => {
  for (const { package: name, version, integrity } of [base.node["linux-amd64"], base.node["linux-arm64"]]) {
    assert.match(section, `\`${name}\``);
    const own: { readonly version?: string } & Locked = lock.packages[`node_modules/${name}`] ?? {};
    assert.equal([own.version, own.integrity], [version, integrity], name);
  }
});

test("deploy/Containerfile has no base image of its own, and refuses one without a digest", () => {
  const text = read("deploy/Containerfile").replaceAll("\\\n", "");
  const from = [...text.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image);
  assert.equal(from, ["${BUILD_IMAGE}", "${BASE_IMAGE}"]);
  const [, guard = ""] = /^RUN (for image in .*)$/m.exec(text) ?? [];
  const digest = `@sha256:${"a".repeat(64)}`;
  const build = (BUILD_IMAGE: string, BASE_IMAGE: string): number | null =>
    spawnSync("sh", ["-ec", guard], { env: { BUILD_IMAGE, BASE_IMAGE } }).status;
  assert.is(build(`node:24${digest}`, `base${digest}`), 0);
  for (const [one, other] of [
    ["node:24", `base${digest}`],
    [`node:24${digest}`, "base:nonroot"],
    ["", ""],
  ] as const)
    assert.is(build(one, other), 1, `${one} ${other}`);
});

test("a package that was packed without its build says so, and ends with 2", () => {
  const folder = mkdtempSync(join(tmpdir(), "watchkeeper-unbuilt-"));
  try {
    cpSync("bin", join(folder, "bin"), { recursive: true });
    const { status, stderr } = spawnSync(process.execPath, [join(folder, "bin/watchkeeper.js"), "version"]);
    assert.equal(
      [status, String(stderr)],
      [2, "This package contains no program: it was packed without `npm run pack`\n"],
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.run();
