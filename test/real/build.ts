/**
 * Builds every program that the test rig runs into the cache, and the virtual environment of the Python client beside
 * them. A program that is already there is not built again. Small programs come first, so that suites which need only
 * those can start early. Operators and programs of other versions of Kubernetes are built only if an argument names
 * them, such as kube-apiserver-1.33.
 *
 * node test/real/build.ts [program ...]
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  crdPath,
  goFolder,
  has,
  isOnDemand,
  monitoringKinds,
  type Program,
  pathOf,
  programs,
  pythonFolder,
  pythonPath,
} from "./rig/parts.ts";

/**
 * Returns the version of Kubernetes that a Go module pins. A module that pins none gets the version of the default
 * kube-apiserver.
 */
function kubernetesOf(module: string): string {
  const pinned = (folder: string): string | undefined =>
    /\bk8s\.io\/kubernetes (v\S+)/.exec(readFileSync(join(goFolder, folder, "go.mod"), "utf8"))?.[1];
  return pinned(module) ?? pinned("kubernetes") ?? "";
}

/**
 * Linker flags that set the version which kube-apiserver returns at /version and kubectl compares with the server's
 * version.
 */
function stamps(module: string): string[] {
  const version = kubernetesOf(module);
  const minor = version.split(".")[1];
  return ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"].flatMap((place) => [
    `-X ${place}.gitVersion=${version}`,
    `-X ${place}.gitMajor=1`,
    `-X ${place}.gitMinor=${minor}`,
    `-X ${place}.gitTreeState=clean`,
  ]);
}

function seconds(since: number): string {
  return `${((Date.now() - since) / 1000).toFixed(0)} s`;
}

/** Runs a command at low CPU priority, because other work may use the machine during a build. */
function run(command: string, args: readonly string[], folder: string): void {
  const { status, error } = spawnSync("nice", ["-n", "10", command, ...args], {
    cwd: folder,
    stdio: "inherit",
  });
  if (status !== 0)
    throw new Error(`Cannot run ${command} ${args.join(" ")}: exit ${status}`, { cause: error });
}

function build(program: Program): void {
  const target = pathOf(program);
  if (existsSync(target)) {
    console.log(`${program}: there already`);
    return;
  }
  console.log(`${program}: building`);
  const started = Date.now();
  mkdirSync(dirname(target), { recursive: true });
  const { module, package: path } = programs[program];
  // Built under another name and then renamed, so that an interrupted build is never taken for a finished one.
  const aside = `${target}.${process.pid}`;
  const folder = join(goFolder, module);
  const flags = ["-p", "2", "-buildvcs=false", "-ldflags", ["-s", "-w", ...stamps(module)].join(" ")];
  if (existsSync(join(folder, `${program}.mod`))) flags.push(`-modfile=${program}.mod`);
  const verb = program.endsWith(".test") ? ["test", "-c"] : ["build"];
  run("go", [...verb, ...flags, "-o", aside, path], folder);
  renameSync(aside, target);
  console.log(`${program}: ${seconds(started)}`);
}

function buildPython(): void {
  const python = pythonPath();
  if (existsSync(python)) {
    console.log("python client: there already");
    return;
  }
  const started = Date.now();
  const folder = dirname(dirname(python));
  const aside = `${folder}.${process.pid}`;
  // The virtual environment still works after the rename, because only its python is called and never one of its
  // scripts, which contain the old path.
  run("python3", ["-m", "venv", aside], pythonFolder);
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"];
  run(join(aside, "bin", "python"), pip, pythonFolder);
  renameSync(aside, folder);
  console.log(`python client: ${seconds(started)}`);
}

/**
 * Copies the CRDs of the Prometheus operator from the Go module of that operator. Go downloads the module and checks it
 * against go.sum; nothing of it is built.
 */
function fetchCrds(): void {
  if (monitoringKinds.every((kind) => existsSync(crdPath(kind)))) {
    console.log("monitoring CRDs: there already");
    return;
  }
  const folder = join(goFolder, "prometheus-operator");
  const [, name = "", version = ""] =
    /^require (\S+) (\S+)/m.exec(readFileSync(join(folder, "go.mod"), "utf8")) ?? [];
  const { stdout, stderr } = spawnSync("go", ["mod", "download", "-json", `${name}@${version}`], {
    cwd: folder,
    encoding: "utf8",
  });
  const { Dir, Error: problem } = JSON.parse(stdout) as { readonly Dir?: string; readonly Error?: string };
  if (Dir === undefined) throw new Error(`Cannot fetch ${name}: ${problem ?? stderr}`);
  for (const kind of monitoringKinds) {
    mkdirSync(dirname(crdPath(kind)), { recursive: true });
    copyFileSync(
      join(Dir, `example/prometheus-operator-crd/monitoring.coreos.com_${kind}.yaml`),
      crdPath(kind),
    );
  }
  console.log("monitoring CRDs: fetched");
}

const wanted = process.argv.slice(2);
for (const command of ["go", "python3", "nice"]) {
  if (!has(command)) throw new Error(`Cannot build the rig without ${command}`);
}
const started = Date.now();
for (const program of Object.keys(programs) as Program[]) {
  if (wanted.includes(program) || (wanted.length === 0 && !isOnDemand(program))) build(program);
}
if (wanted.length === 0 || wanted.includes("crds")) fetchCrds();
if (wanted.length === 0 || wanted.includes("python")) buildPython();
console.log(`done in ${seconds(started)}`);
