/**
 * Runs other HTTP/2 implementations, in Python and in Go, as child processes. They are built into the cache on first
 * use, which takes some seconds. If this machine lacks something for that, the output says what.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder, has, hashOf } from "../real/rig/parts.ts";

const goFolder = fileURLToPath(new URL("go/", import.meta.url));
const pythonFolder = fileURLToPath(new URL("python/", import.meta.url));

export type Peer = {
  readonly name: string;
  /** Returns one answer to each request. The caller knows the answers' type. The peer's process ends with the call. */
  ask<Answer>(requests: readonly object[]): Answer[];
};

/** Returns the peers that this machine can run. Fails in CI if one of them cannot run. */
export function peersHere(): Peer[] {
  return [pythonPeer(), goPeer()].flatMap((found) => {
    if (typeof found !== "string") return [found];
    if (process.env["CI"] !== undefined) throw new Error(`Cannot skip in CI: ${found}`);
    console.log(`skip: ${found}`);
    return [];
  });
}

function pythonPeer(): Peer | string {
  if (!has("python3")) return "needs python3: apt-get install python3-venv";
  const folder = join(cacheFolder(), `wire-python-${hashOf(pythonFolder, "requirements.txt")}`);
  const python = join(folder, "bin", "python");
  const fault = existsSync(python) ? undefined : buildPython(folder);
  return fault ?? peer("Python (hpack 4.2.0, hyperframe 6.1.0)", python, [join(pythonFolder, "peer.py")]);
}

/**
 * Builds in another folder and renames it afterwards, so that an interrupted build is never taken for a complete one.
 */
function buildPython(folder: string): string | undefined {
  const aside = `${folder}.${process.pid}`;
  mkdirSync(dirname(folder), { recursive: true });
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"];
  const fault =
    run("python3", ["-m", "venv", aside], pythonFolder) ?? run(join(aside, "bin/python"), pip, pythonFolder);
  if (fault === undefined) takePlace(aside, folder);
  rmSync(aside, { recursive: true, force: true });
  return fault;
}

/**
 * Test files run side by side, so several may build the same peer. The first to finish moves its build into place, and
 * the others use that build.
 */
function takePlace(aside: string, folder: string): void {
  try {
    renameSync(aside, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  }
}

function goPeer(): Peer | string {
  if (!has("go")) return "needs go: apt-get install golang";
  const target = join(cacheFolder(), `wire-go-${hashOf(goFolder, "*.{mod,sum,go}")}`, "peer");
  const fault = existsSync(target) ? undefined : buildGo(target);
  return fault ?? peer("Go (x/net 0.62.0)", target, []);
}

function buildGo(target: string): string | undefined {
  const aside = `${target}.${process.pid}`;
  mkdirSync(dirname(target), { recursive: true });
  const fault = run("go", ["build", "-o", aside, "."], goFolder);
  if (fault === undefined) renameSync(aside, target);
  return fault;
}

/** Runs a command. Returns undefined on success, and the error message otherwise. */
function run(command: string, args: readonly string[], cwd: string): string | undefined {
  const { status, stderr } = spawnSync(command, args, { cwd, encoding: "utf8" });
  return status === 0 ? undefined : `cannot run ${command} ${args.join(" ")}: ${stderr.slice(-200)}`;
}

function peer(name: string, command: string, args: readonly string[]): Peer {
  return {
    name,
    ask<Answer>(requests: readonly object[]): Answer[] {
      const input = requests.map((request) => `${JSON.stringify(request)}\n`).join("");
      const { status, stdout, stderr } = spawnSync(command, args, {
        input,
        encoding: "utf8",
        maxBuffer: 2 ** 30,
      });
      const answers = stdout.split("\n").filter((line) => line !== "");
      if (status !== 0 || answers.length !== requests.length)
        throw new Error(`${name} answered ${answers.length} of ${requests.length}: ${stderr.slice(-500)}`);
      return answers.map((line) => JSON.parse(line) as Answer);
    },
  };
}
