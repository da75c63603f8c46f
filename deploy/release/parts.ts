/** Node and Debian's C libraries for each platform, pinned in base.json and kept in ~/.cache/watchkeeper/release. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import base from "./base.json" with { type: "json" };
import { addFolder, file, fileIn, type Tree } from "./tar.ts";

export type Platform = keyof typeof base.node;
export const platforms: readonly Platform[] = [
  "darwin-amd64",
  "darwin-arm64",
  "linux-amd64",
  "linux-arm64",
  "windows-amd64",
];

const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "watchkeeper/release");

function run(command: string, args: readonly string[], cwd = cache): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: "utf8" });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(" ")}: ${error?.message ?? stderr}`);
}

/** Returns the npm package that contains Node for a platform. */
function nodePackage(platform: Platform): Buffer {
  const { package: name, version, integrity } = base.node[platform];
  const path = join(cache, `${name}-${version}.tgz`);
  mkdirSync(cache, { recursive: true });
  if (!existsSync(path)) run("npm", ["pack", "--silent", "--prefer-offline", `${name}@${version}`]);
  const bytes = readFileSync(path);
  const found = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  if (found === integrity) return bytes;
  rmSync(path);
  throw new Error(`${name}@${version} has integrity ${found}, base.json names ${integrity}`);
}

/** Adds Node's program and licence. */
export function addNode(tree: Tree, platform: Platform, path: string): void {
  const bytes = nodePackage(platform);
  const program = platform.startsWith("windows") ? "node.exe" : "node";
  tree.set(path, file(fileIn(bytes, `package/bin/${program}`), 0o755));
  // The licence comes from the package for Linux if the platform is Windows, whose package has no licence file. The
  // licence is the same on every platform.
  const licence = platform.startsWith("windows") ? nodePackage("linux-amd64") : bytes;
  tree.set(path.replace(/[^/]*$/, "LICENSE.node"), file(fileIn(licence, "package/LICENSE")));
}

type Architecture = keyof typeof base.debian;

function debianFile(architecture: Architecture, at: (typeof base.debian)[Architecture][number]): string {
  const path = join(cache, `${at.name}_${at.version}_${architecture}.deb`);
  if (!existsSync(path)) {
    const state = join(cache, `apt-${architecture}`);
    mkdirSync(join(state, "lists/partial"), { recursive: true });
    mkdirSync(join(state, "archives/partial"), { recursive: true });
    const options = [
      `APT::Architecture=${architecture}`,
      `APT::Architectures=${architecture}`,
      `Dir::State=${state}`,
      "Dir::State::status=/dev/null",
      `Dir::Cache=${state}`,
      "APT::Sandbox::User=root",
    ].flatMap((option) => ["-o", option]);
    run("apt-get", [...options, "-qq", "update"]);
    run("apt-get", [...options, "-qq", "download", `${at.name}=${at.version}`]);
  }
  const found = createHash("sha256").update(readFileSync(path)).digest("hex");
  if (found === at.sha256) return path;
  rmSync(path);
  throw new Error(`${path} has SHA-256 ${found}, base.json names ${at.sha256}`);
}

/** The libraries that Node links or opens at run time, and the packages' licences. */
const isWanted = (path: string): boolean =>
  /(^|\/)(ld-linux[\w-]*|lib(c|m|dl|pthread|rt|resolv|nss_dns|nss_files|gcc_s|atomic|stdc\+\+))\.so[\d.]*$/.test(
    path,
  ) || path.endsWith("/copyright");

/** Adds what the program needs in a container: the C libraries, the user 65532, and name resolution. */
export function addBase(tree: Tree, architecture: Architecture): void {
  const folder = mkdtempSync(join(tmpdir(), "watchkeeper-base-"));
  try {
    for (const one of base.debian[architecture])
      run("dpkg-deb", ["-x", debianFile(architecture, one), folder]);
    addFolder(tree, { folder, prefix: "", isWanted });
  } finally {
    rmSync(folder, { recursive: true });
  }
  tree.set("etc/passwd", file("root:x:0:0:root:/:/none\nnonroot:x:65532:65532:nonroot:/:/none\n"));
  tree.set("etc/group", file("root:x:0:\nnonroot:x:65532:\n"));
  tree.set("etc/nsswitch.conf", file("hosts: files dns\n"));
  tree.set("tmp", { mode: 0o1777, content: "directory" });
}
