/**
 * What the rig is made of: where each built program lies, and what this machine lacks.
 * A program's folder carries the hash of the Go module that pins it, so a new version never meets an old binary.
 */
import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, globSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Test } from "uvu";

export const goFolder = fileURLToPath(new URL("../go/", import.meta.url));
export const pythonFolder = fileURLToPath(new URL("../python/", import.meta.url));

/** Versions of Kubernetes that a test can name. 1.36 is the one of the other suites; the others are built only when named. */
export const versions = ["1.33", "1.34", "1.35", "1.36", "1.37"] as const;
export type Version = (typeof versions)[number];

const apiserverPackage = "k8s.io/kubernetes/cmd/kube-apiserver";
const kubectlPackage = "k8s.io/kubernetes/cmd/kubectl";

/** program -> the module under go/ that pins it, and the package to build. Cheapest first. */
export const programs = {
  h2spec: { module: "h2spec", package: "github.com/summerwind/h2spec/cmd/h2spec" },
  informer: { module: "informer", package: "." },
  collector: { module: "collector", package: "." },
  kubelet: { module: "kubelet", package: "." },
  etcd: { module: "etcd", package: "go.etcd.io/etcd/server/v3" },
  kustomize: { module: "kustomize", package: "sigs.k8s.io/kustomize/kustomize/v5" },
  helm: { module: "helm", package: "helm.sh/helm/v3/cmd/helm" },
  kwok: { module: "kwok", package: "sigs.k8s.io/kwok/cmd/kwok" },
  "kube-apiserver": { module: "kubernetes", package: apiserverPackage },
  kubectl: { module: "kubernetes", package: kubectlPackage },
  // After kube-apiserver, whose packages it shares: alone it would take a minute, so it is linked in seconds.
  signer: { module: "signer", package: "." },
  // A module of their own: with them kube-apiserver would be pinned to other dependencies, and built again.
  ginkgo: { module: "conformance", package: "github.com/onsi/ginkgo/v2/ginkgo" },
  "kube-scheduler": { module: "conformance", package: "k8s.io/kubernetes/cmd/kube-scheduler" },
  "kube-controller-manager": {
    module: "conformance",
    package: "k8s.io/kubernetes/cmd/kube-controller-manager",
  },
  /** The package's tests, compiled. ginkgo runs a file of this ending. */
  "e2e.test": { module: "conformance", package: "k8s.io/kubernetes/test/e2e" },
  "kube-apiserver-1.33": { module: "kubernetes-1.33", package: apiserverPackage },
  "kubectl-1.33": { module: "kubernetes-1.33", package: kubectlPackage },
  "kube-apiserver-1.34": { module: "kubernetes-1.34", package: apiserverPackage },
  "kubectl-1.34": { module: "kubernetes-1.34", package: kubectlPackage },
  "kube-apiserver-1.35": { module: "kubernetes-1.35", package: apiserverPackage },
  "kubectl-1.35": { module: "kubernetes-1.35", package: kubectlPackage },
  "kube-apiserver-1.37": { module: "kubernetes-1.37", package: apiserverPackage },
  "kubectl-1.37": { module: "kubernetes-1.37", package: kubectlPackage },
  /** A file of the program's name and ".mod" pins other versions than go.mod does. */
  "client-go": { module: "operator", package: "./client-go" },
  "controller-runtime-0.21": { module: "operator", package: "./controller-runtime" },
  "controller-runtime-0.23": { module: "operator", package: "./controller-runtime" },
  "controller-runtime-0.25": { module: "operator", package: "./controller-runtime" },
} as const;

export type Program = keyof typeof programs;

/** A program that few commands need: `build.ts` builds it only when it is named. */
export function isOnDemand(program: Program): boolean {
  const { module } = programs[program];
  return ["kustomize", "operator"].includes(module) || module.startsWith("kubernetes-");
}

/** `program` of that version of Kubernetes. */
export function programOf(program: "kube-apiserver" | "kubectl", version: Version): Program {
  return version === "1.36" ? program : `${program}-${version}`;
}

export function cacheFolder(): string {
  const named = process.env["WATCHKEEPER_CACHE"];
  if (named !== undefined && named !== "") return named;
  return join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "watchkeeper");
}

/** Of the names and contents of the files in `folder` that `pattern` names: what was built from them is kept under it. */
export function hashOf(folder: string, pattern: string): string {
  const hash = createHash("sha256");
  for (const file of globSync(pattern, { cwd: folder }).toSorted()) {
    hash.update(file).update(readFileSync(join(folder, file)));
  }
  return hash.digest("hex").slice(0, 16);
}

/** Where `program` is, or will be once `build.ts` has run. */
export function pathOf(program: Program): string {
  const { module } = programs[program];
  return join(cacheFolder(), `${module}-${hashOf(join(goFolder, module), "**/*.{mod,sum,go}")}`, program);
}

/** Kinds of the operator of Prometheus that deploy/ and config/ have objects of: its CRDs, not its program. */
export const monitoringKinds = ["servicemonitors", "prometheusrules"] as const;

/** Where its CRD is, as its authors publish it: go/prometheus-operator pins the version, go.sum its bytes. */
export function crdPath(kind: (typeof monitoringKinds)[number]): string {
  const module = "prometheus-operator";
  return join(cacheFolder(), `${module}-${hashOf(join(goFolder, module), "**/*.{mod,sum}")}`, `${kind}.yaml`);
}

/** The interpreter of a virtual environment that holds exactly python/requirements.txt. */
export function pythonPath(): string {
  return join(cacheFolder(), `python-${hashOf(pythonFolder, "requirements.txt")}`, "bin", "python");
}

/** What a suite may need from the machine; commands name the Debian package that brings them. */
const commands = {
  ip: "iproute2",
  iptables: "iptables",
  keepalived: "keepalived",
  openssl: "openssl",
  setpriv: "util-linux",
  tar: "tar",
  chromium: "chromium",
  curl: "curl",
};

export type Need = "root" | "python" | "crds" | keyof typeof commands | Program;

/** All that `startCluster` needs. */
export const clusterNeeds: readonly Need[] = [
  "root",
  "ip",
  "iptables",
  "openssl",
  "setpriv",
  "etcd",
  "kube-apiserver",
  "kwok",
  "kubelet",
];

function prepare(...named: readonly Program[]): string {
  return `run ${["test/real/prepare.sh", ...named].join(" ")} (minutes, once)`;
}

/** True if `command` is on the PATH. Exported for build.ts. */
export function has(command: string): boolean {
  return (process.env["PATH"] ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, command), constants.X_OK);
      return true;
    } catch {
      return false; // not in this folder: the next one may have it
    }
  });
}

/** What to do for something that this machine has not; undefined: it has it. */
export function lacking(need: Need): string | undefined {
  if (need === "root") return process.geteuid?.() === 0 ? undefined : "root, for network namespaces";
  if (need === "python") return existsSync(pythonPath()) ? undefined : `the Python client: ${prepare()}`;
  if (need === "crds") {
    const isThere = monitoringKinds.every((kind) => existsSync(crdPath(kind)));
    return isThere ? undefined : `the CRDs of the operator of Prometheus: ${prepare()}`;
  }
  if (need in programs) {
    const program = need as Program;
    const command = isOnDemand(program) ? prepare(program) : prepare();
    return existsSync(pathOf(program)) ? undefined : `${program}, built with Go: ${command}`;
  }
  return has(need) ? undefined : `${need}: apt-get install ${commands[need as keyof typeof commands]}`;
}

/** Adds one test to a suite; `canRun` tells `before` and `after` whether there is anything to start. */
export type Case = {
  (title: string, body: () => Promise<void>): void;
  readonly canRun: boolean;
};

/**
 * The suite's `test`, or its `skip` when the machine lacks something; what is missing is said aloud.
 * In CI nothing is skipped: the suite fails instead, since a suite that never runs proves nothing.
 */
export function testWith(test: Test, needs: readonly Need[]): Case {
  const missing = needs.map(lacking).filter((what) => what !== undefined);
  const canRun = missing.length === 0;
  if (!canRun && process.env["CI"] !== undefined) {
    throw new Error(`Cannot skip in CI: needs ${missing.join("; ")}`);
  }
  for (const what of missing) process.stdout.write(`skip: needs ${what}\n`);
  const add = (title: string, body: () => Promise<void>): void => {
    if (canRun) test(title, body);
    else test.skip(title, body);
  };
  return Object.assign(add, { canRun });
}

/** A result worth reading when all went well; the runner repeats such lines. */
export { figure } from "../../support/figure.ts";
