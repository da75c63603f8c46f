/**
 * node executable/build.js [FILE]
 *
 * Builds the single executable for this platform (https://nodejs.org/api/single-executable-applications.html): the Node
 * version that package-lock.json pins, into which the package, its dependencies and main.cjs are injected.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, cpSync, globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";

/** The sentinel that Node looks for in its own binary. */
const fuse = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";
const root = resolve(import.meta.dirname, "..");
const target = resolve(process.argv[2] ?? join(root, "dist-executable", `watchkeeper-${process.platform}-${process.arch}`));

function run(command, args, cwd = root) {
  const { status } = spawnSync(command, args, { cwd, stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0) throw new Error(`Cannot build: ${command} ${args.join(" ")} ended with ${status}`);
}

/** Gathers the package as it would be installed, without Node. */
function gather(folder) {
  run("npm", ["run", "-s", "build"]);
  for (const name of ["package.json", "package-lock.json", "config", "deploy/deployment", "dist", "docs"])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  run("npm", ["ci", "--omit=dev", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"], folder);
}

/** Files that are not used at run time: type declarations, source maps, the packages' documentation, and the docs' pictures. */
const unneeded = /^config\/.*\.ts$|\.(d\.[cm]?ts|map|markdown|flow)$|^(?!docs\/).*\.md$|^docs\/.*(?<!\.md)$/;

function pack(folder) {
  const paths = globSync("**", { cwd: folder, dot: true })
    .filter((path) => statSync(join(folder, path)).isFile() && !unneeded.test(path))
    .toSorted();
  const contents = paths.map((path) => readFileSync(join(folder, path)));
  const index = JSON.stringify(paths.map((path, at) => [path, contents[at].length]));
  return Buffer.concat([Buffer.from(`${index}\n`), ...contents]);
}

const work = mkdtempSync(join(tmpdir(), "watchkeeper-executable-"));
try {
  const folder = join(work, "package");
  cpSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  gather(folder);
  const bytes = pack(folder);
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const name = `${version}-${createHash("sha256").update(bytes).digest("hex").slice(0, 16)}`;
  const params = { [constants.BROTLI_PARAM_QUALITY]: 6 };
  writeFileSync(join(work, "package.br"), brotliCompressSync(bytes, { params }));
  writeFileSync(join(work, "name"), name);
  const config = {
    main: join(import.meta.dirname, "main.cjs"),
    output: join(work, "blob"),
    disableExperimentalSEAWarning: true,
    execArgv: ["--disable-sigusr1", "--max-semi-space-size=8"],
    assets: { package: join(work, "package.br"), name: join(work, "name") },
  };
  writeFileSync(join(work, "sea.json"), JSON.stringify(config));
  const node = process.execPath;
  run(node, ["--experimental-sea-config", join(work, "sea.json")]);
  rmSync(target, { force: true });
  cpSync(node, target, { dereference: true });
  chmodSync(target, 0o755);
  run(join(root, "node_modules/.bin/postject"), [target, "NODE_SEA_BLOB", join(work, "blob"), "--sentinel-fuse", fuse]);
  process.stdout.write(`${target}: ${Math.round(statSync(target).size / 2 ** 20)} MiB\n`);
} finally {
  rmSync(work, { recursive: true, force: true });
}
