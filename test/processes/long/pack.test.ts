/**
 * Installs the result of `npm run pack` globally into an empty prefix, as a user would, and starts it with an older Node if
 * this machine has one. Starts the result of `npm run executable` where no Node can be found.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";

const test = suite("long/pack");
const directory = mkdtempSync(join(tmpdir(), "watchkeeper-pack-"));
test.after(() => rmSync(directory, { recursive: true, force: true }));

type Said = { readonly code: number | null; readonly out: string; readonly err: string };

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Said {
  const { status, stdout, stderr, error } = spawnSync(command, args, { env, timeout: 600_000 });
  return { code: status, out: String(stdout), err: `${String(stderr)}${error?.message ?? ""}` };
}

/** PATH without node_modules/.bin, so that the machine's own Node is used. */
const ownPath = (process.env["PATH"] ?? "")
  .split(delimiter)
  .filter((folder) => !folder.endsWith("node_modules/.bin"))
  .join(delimiter);

/** Writes a configuration that is valid, as far as `check --offline` can tell without a connection to a backend. */
function configFile(): string {
  const file = join(directory, "watchkeeper.yaml");
  const text = readFileSync("config/passthrough.yaml", "utf8").replaceAll(
    "/etc/kubernetes/pki/",
    `${directory}/`,
  );
  writeFileSync(file, text);
  return file;
}

/** The checks for each way of installation. */
function tryOut(command: string, env: NodeJS.ProcessEnv): void {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  assert.match(
    run(command, ["--version"], env).out,
    `watchkeeper ${version} (node ${process.versions.node})`,
  );
  const pki = run(command, ["pki", "init", "--dir", directory], env);
  assert.ok(pki.code === 0 || pki.err.includes("nothing is overwritten"), pki.err);
  const checked = run(command, ["check", "--offline", "--config", configFile()], env);
  assert.is(checked.code, 0, checked.out + checked.err);
  assert.match(checked.out, /✓ .*watchkeeper\.yaml: valid[^]*✓ backend CA: certificate good until/);
  // The demo forks its apiservers as processes from the same package.
  const demo = run(command, ["demo", "--once", "--faults", "none", "--port", "0"], env);
  assert.equal([demo.code, demo.err], [0, ""]);
  assert.match(demo.out, "so far  5 writes, 5 events");
  assert.match(run(command, ["docs", "runbooks/WatchkeeperDown"], env).out, "# WatchkeeperDown");
  assert.match(run(command, ["config"], env).out, "kind: WatchkeeperConfiguration");
  assert.match(run(command, ["manifest", "deployment", "--image", "w"], env).out, "kind: Deployment");
}

test("the packed package runs from a global install in an empty prefix", () => {
  const env = { ...process.env, PATH: ownPath };
  const packed = run("npm", ["run", "-s", "pack", "--", "--pack-destination", directory, "--json"], env);
  assert.is(packed.code, 0, packed.err);
  const [{ filename, files }] = JSON.parse(packed.out) as [{ filename: string; files: { path: string }[] }];
  const paths = files.map(({ path }) => path);
  for (const path of [
    "dist/src/ops/cli/cli.js",
    "dist/src/ops/page/index.html",
    "config/schema/watchkeeper.v1alpha2.json",
  ])
    assert.ok(paths.includes(path), path);
  assert.equal(
    paths.filter((path) => /^(src|test|bench)\/|\.ts$/.test(path)),
    [],
  );
  const prefix = join(directory, "prefix");
  const options = ["--prefix", prefix, "--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts"];
  const installed = run("npm", ["install", "--global", ...options, join(directory, filename)], env);
  assert.is(installed.code, 0, installed.err);
  tryOut(join(prefix, "bin/watchkeeper"), env);
  assert.match(
    run(join(prefix, "bin/kubectl-watchkeeper"), ["--help"], env).out,
    "usage: watchkeeper COMMAND",
  );
});

test("the single executable runs where there is no Node, and unpacks itself once", () => {
  const file = join(directory, "watchkeeper");
  const built = run(process.execPath, ["executable/build.js", file]);
  assert.is(built.code, 0, built.err);
  const env = { PATH: "/nonexistent", HOME: join(directory, "home") };
  tryOut(file, env);
  const nowhere = run(file, ["--version"], { PATH: "/nonexistent" });
  assert.equal([nowhere.code, nowhere.out], [2, ""]);
  assert.match(nowhere.err, "set WATCHKEEPER_UNPACK");
});

test("the image's steps name scripts and files that are there", () => {
  const text = readFileSync("deploy/Containerfile", "utf8");
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
  for (const [, script = ""] of text.matchAll(/npm run (?:--silent )?(\w+)/g))
    assert.ok(scripts[script], script);
  const copied = [...text.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names = ""]) =>
    names.split(" "),
  );
  for (const name of copied)
    assert.is(spawnSync("git", ["ls-files", "--error-unmatch", name]).status, 0, name);
  assert.match(text, /^USER 65532:65532$/m);
});

test.run();
