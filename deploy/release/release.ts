/**
 * npm run release -- [--out DIR] [--only PLATFORM]… [--url URL] [--image NAME]
 *
 * --image: where you will push the image. The chart and the archives then contain this name with the image's digest.
 * Makes all files of a release. The same commit gives the same bytes. WATCHKEEPER_SIGNING_KEY: an Ed25519 key in PEM,
 * with which the checksums are signed. Default: no signature.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { parse } from "yaml";
import { timestampOf } from "../../src/base/clock.ts";
import { bundle } from "./bundle.ts";
import { Layout, sha256 } from "./oci.ts";
import { addBase, addNode, type Platform, platforms } from "./parts.ts";
import { sbom } from "./sbom.ts";
import { minisigned } from "./sign.ts";
import { addFolder, compressed, file, type Tree, tarOf } from "./tar.ts";

const root = resolve(import.meta.dirname, "../..");
type Package = { readonly version: string; readonly description: string };
const own: Package = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const { version, description } = own;
const chart = join(root, "deploy/helm/watchkeeper");
const all = (): boolean => true;
const flags = ["--disable-sigusr1", "--max-semi-space-size=8"];
const allocator = ["MALLOC_ARENA_MAX=2", "MALLOC_TRIM_THRESHOLD_=1048576", "MALLOC_MMAP_THRESHOLD_=65536"];

function outputOf(command: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr}`);
  return stdout;
}

/** Returns the image's creation time: SOURCE_DATE_EPOCH, or else the time of the commit. */
function createdAt(): string {
  const seconds = process.env["SOURCE_DATE_EPOCH"] ?? outputOf("git", ["log", "-1", "--format=%ct"]);
  return timestampOf(Number(seconds) * 1000);
}

/**
 * Adds the program as it is installed: the bundle, the admin page's packages for the browser, the schemas, the docs and
 * the manifests of the Deployment.
 */
async function addProgram(tree: Tree, prefix: string, parts: { dist: string; sbom: string }): Promise<void> {
  addFolder(tree, { folder: parts.dist, prefix: `${prefix}/dist`, isWanted: all });
  for (const name of ["bin", "config", "docs", "deploy/deployment"])
    addFolder(tree, {
      folder: join(root, name),
      prefix: `${prefix}/${name}`,
      isWanted: (path) => !path.endsWith(".ts"),
    });
  for (const name of ["htm", "preact"])
    addFolder(tree, {
      folder: join(root, "node_modules", name),
      prefix: `${prefix}/node_modules/${name}`,
      isWanted: (path) => /(\.m?js|\.css|package\.json|LICENSE)$/.test(path),
    });
  for (const name of ["package.json", "LICENSE"])
    tree.set(`${prefix}/${name}`, file(readFileSync(join(root, name))));
  tree.set(`${prefix}/sbom.cdx.json`, file(parts.sbom));
}

const launcher = `#!/bin/sh
# Starts the program beside this file. kubectl plugins are started by a link to it.
self=$0
while [ -L "$self" ]; do
  link=$(readlink "$self")
  case $link in /*) self=$link ;; *) self=$(dirname "$self")/$link ;; esac
done
here=$(cd "$(dirname "$self")" && pwd)
export ${allocator.join(" ")}
exec "$here/node" ${flags.join(" ")} "$here/app/dist/src/ops/cli/cli.js" "$@"
`;
const windowsLauncher = `@"%~dp0node.exe" ${flags.join(" ")} "%~dp0app\\dist\\cli\\cli.js" %*\r\n`;

function archiveTree(program: Tree, platform: Platform): Tree {
  const tree: Tree = new Map(program);
  const isWindows = platform.startsWith("windows");
  addNode(tree, platform, isWindows ? "node.exe" : "node");
  for (const name of ["watchkeeper", "kubectl-watchkeeper"])
    if (isWindows) tree.set(`${name}.cmd`, file(windowsLauncher));
    else tree.set(name, file(launcher, 0o755));
  return tree;
}

/**
 * Adds the image of one platform. The image contains the same program as that of deploy/Containerfile. Of an operating
 * system, it contains only Debian's C libraries.
 */
async function addImage(
  layout: Layout,
  program: Tree,
  platform: Platform,
  created: string,
): Promise<ReturnType<Layout["put"]>> {
  const architecture = platform === "linux-arm64" ? "arm64" : "amd64";
  const [system, app]: [Tree, Tree] = [new Map(), new Map(program)];
  addBase(system, architecture);
  addNode(system, platform, "usr/local/bin/node");
  const command = '#!/usr/local/bin/node\nimport "/app/bin/watchkeeper.js";\n';
  for (const name of ["watchkeeper", "kubectl-watchkeeper"])
    app.set(`usr/local/bin/${name}`, file(command, 0o755));
  const labels = {
    "org.opencontainers.image.title": "watchkeeper",
    "org.opencontainers.image.version": version,
    "org.opencontainers.image.licenses": "Apache-2.0",
  };
  const config = {
    User: "65532:65532",
    Env: ["PATH=/usr/local/bin", ...allocator],
    Entrypoint: ["/usr/local/bin/node", ...flags, "/app/dist/src/ops/cli/cli.js"],
    Cmd: ["run", "--config", "/etc/watchkeeper/watchkeeper.yaml"],
    WorkingDir: "/",
    Labels: labels,
  };
  const layers = [tarOf(system), tarOf(app)];
  return layout.image(architecture, layers, { config, created }, labels);
}

/** Calls `fill` with a new layout, and returns the layout as one tar archive. */
async function layoutTar(fill: (layout: Layout) => Promise<unknown>): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), "watchkeeper-layout-"));
  try {
    await fill(new Layout(folder));
    const tree: Tree = new Map();
    addFolder(tree, { folder, prefix: "", isWanted: all });
    return tarOf(tree);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function chartLayout(tgz: Buffer): Promise<Buffer> {
  return layoutTar(async (layout) => {
    const about: object = parse(readFileSync(join(chart, "Chart.yaml"), "utf8"));
    const config = layout.putJson("application/vnd.cncf.helm.config.v1+json", about);
    const layer = layout.put("application/vnd.cncf.helm.chart.content.v1.tar+gzip", tgz);
    layout.tag(version, [layout.manifest(config, [layer], {})]);
  });
}

/**
 * Returns the manifest of the kubectl plugin for krew. It omits Windows, because there krew requires a program that
 * ends in .exe.
 */
function krewManifest(url: string, archives: ReadonlyMap<Platform, string>): string {
  const blocks = [...archives].flatMap(([platform, hex]) => {
    const [os = "", arch = ""] = platform.split("-");
    if (os === "windows") return [];
    return [
      `    - selector: {matchLabels: {os: ${os}, arch: ${arch}}}`,
      `      uri: ${url}/${archiveName(platform)}`,
      `      sha256: ${hex}`,
      "      bin: kubectl-watchkeeper",
    ];
  });
  return `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata: {name: watchkeeper}
spec:
  version: v${version}
  shortDescription: See and operate watchkeeper
  description: ${JSON.stringify(description)}
  platforms:
${blocks.join("\n")}
`;
}

const archiveName = (platform: Platform): string => `watchkeeper-${version}-${platform}.tar.gz`;

/** Writes SHA256SUMS, and its signature if there is a key. */
function writeChecksums(out: string): void {
  const names = readdirSync(out).toSorted();
  const sums = names.map((name) => `${sha256(readFileSync(join(out, name)))}  ${name}\n`).join("");
  writeFileSync(join(out, "SHA256SUMS"), sums);
  const pem = process.env["WATCHKEEPER_SIGNING_KEY"];
  if (pem === undefined) return;
  const { signature, publicKey } = minisigned(Buffer.from(sums), pem, `watchkeeper ${version}`);
  writeFileSync(join(out, "SHA256SUMS.minisig"), signature);
  writeFileSync(join(out, "minisign.pub"), publicKey);
}

/** Returns values.yaml with the image's name and digest as defaults. */
function stampedValues(name: string, digest: string): string {
  const text = readFileSync(join(chart, "values.yaml"), "utf8");
  const stamped = text
    .replace('\n  repository: ""\n', `\n  repository: ${JSON.stringify(name)}\n`)
    .replace('\n  digest: ""\n', `\n  digest: ${JSON.stringify(digest)}\n`);
  const { repository, digest: found } = parse(stamped).image;
  if (repository !== name || found !== digest)
    throw new Error("values.yaml has no place for the image's name");
  return stamped;
}

type Wishes = {
  readonly out: string;
  readonly only: readonly Platform[];
  readonly url: string;
  /** Name of the image without a tag; default: the chart and `watchkeeper manifest` require one. */
  readonly imageName: string | undefined;
};

async function release({ out, only, url, imageName }: Wishes): Promise<void> {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const save = (name: string, content: string | Buffer): void => {
    writeFileSync(join(out, name), content);
    process.stdout.write(`${name}: ${(Buffer.byteLength(content) / 1e6).toFixed(1)} MB\n`);
  };
  const work = mkdtempSync(join(tmpdir(), "watchkeeper-release-"));
  try {
    await bundle(join(work, "dist"));
    const parts = { dist: join(work, "dist"), sbom: sbom() };
    save("sbom.cdx.json", parts.sbom);
    const program: Tree = new Map();
    await addProgram(program, "app", parts);
    const created = createdAt();
    const linux = only.filter((platform) => platform.startsWith("linux"));
    let digest = "";
    const image = await layoutTar(async (layout) => {
      const images = [];
      for (const platform of linux) images.push(await addImage(layout, program, platform, created));
      digest = layout.tag(version, images);
    });
    if (imageName !== undefined) program.set("app/image", file(`${imageName}@${digest}\n`));
    if (linux.length > 0) save(`watchkeeper-${version}-image.oci.tar`, image);
    const archives = new Map<Platform, string>();
    for (const platform of only) {
      const bytes = await compressed(tarOf(archiveTree(program, platform)));
      archives.set(platform, sha256(bytes));
      save(archiveName(platform), bytes);
    }
    save("watchkeeper.krew.yaml", krewManifest(url, archives));
    const tree: Tree = new Map();
    addFolder(tree, { folder: chart, prefix: "watchkeeper", isWanted: all });
    if (imageName !== undefined) tree.set("watchkeeper/values.yaml", file(stampedValues(imageName, digest)));
    const tgz = await compressed(tarOf(tree));
    save(`watchkeeper-${version}-chart.tgz`, tgz);
    save(`watchkeeper-${version}-chart.oci.tar`, await chartLayout(tgz));
    writeChecksums(out);
  } finally {
    rmSync(work, { recursive: true });
  }
}

const { values } = parseArgs({
  options: {
    out: { type: "string", default: join(root, "dist-release") },
    only: { type: "string", multiple: true, default: [...platforms] },
    url: { type: "string", default: `https://example.com/watchkeeper/v${version}` },
    image: { type: "string" },
  },
});
const only = platforms.filter((platform) => values.only.includes(platform));
if (only.length < new Set(values.only).size)
  throw new Error(`--only must be one of ${platforms.join(", ")}, is ${values.only.join(", ")}`);
if (values.image !== undefined && !only.some((platform) => platform.startsWith("linux")))
  throw new Error("--image needs a Linux platform, because a release without one has no image");
await release({ out: resolve(values.out), only, url: values.url, imageName: values.image });
