/**
 * The programs that the rig uses: where each built program is, and what this machine lacks. The name of a program's
 * folder contains the hash of the Go module that pins the program, so a new version never uses an old binary.
 */
import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, globSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Test } from "uvu";

export const goFolder = fileURLToPath(new URL("../go/", import.meta.url));
export const pythonFolder = fileURLToPath(new URL("../python/", import.meta.url));

/** Versions of Kubernetes that a test can name. Most suites use 1.36; the others are built only if they are named. */
export const versions = ["1.33", "1.34", "1.35", "1.36", "1.37"] as const;
export type Version = (typeof versions)[number];

const apiserverPackage = "k8s.io/kubernetes/cmd/kube-apiserver";
const kubectlPackage = "k8s.io/kubernetes/cmd/kubectl";

/**
 * For each program: the module under go/ that pins it, and the package to build. In the order of build time, the
 * shortest first.
 */
export const programs = {
  h2spec: { module: "h2spec", package: "github.com/summerwind/h2spec/cmd/h2spec" },
  informer: { module: "informer", package: "." },
  collector: { module: "collector", package: "." },
  kubelet: { module: "kubelet", package: "." },
  etcd: { module: "etcd", package: "go.etcd.io/etcd/server/v3" },
  kustomize: { module: "kustomize", package: "sigs.k8s.io/kustomize/kustomize/v5" },
  helm: { module: "helm", package: "helm.sh/helm/v3/cmd/helm" },
  kwok: { module: "kwok", package: "sigs.k8s.io/kwok/cmd/kwok" },
  "kube-vip": { module: "kube-vip", package: "github.com/kube-vip/kube-vip" },
  "kube-apiserver": { module: "kubernetes", package: apiserverPackage },
  kubectl: { module: "kubernetes", package: kubectlPackage },
  // After kube-apiserver, because it uses the same packages: then it only has to be linked, which takes seconds.
  // Without them, its build takes a minute.
  signer: { module: "signer", package: "." },
  // A separate module, because these programs would otherwise change the versions of kube-apiserver's dependencies and
  // cause it to be rebuilt.
  ginkgo: { module: "conformance", package: "github.com/onsi/ginkgo/v2/ginkgo" },
  "kube-scheduler": { module: "conformance", package: "k8s.io/kubernetes/cmd/kube-scheduler" },
  "kube-controller-manager": {
    module: "conformance",
    package: "k8s.io/kubernetes/cmd/kube-controller-manager",
  },
  /** The compiled tests of the package. ginkgo runs only a file whose name ends in .test. */
  "e2e.test": { module: "conformance", package: "k8s.io/kubernetes/test/e2e" },
  "kube-apiserver-1.33": { module: "kubernetes-1.33", package: apiserverPackage },
  "kubectl-1.33": { module: "kubernetes-1.33", package: kubectlPackage },
  "kube-apiserver-1.34": { module: "kubernetes-1.34", package: apiserverPackage },
  "kubectl-1.34": { module: "kubernetes-1.34", package: kubectlPackage },
  "kube-apiserver-1.35": { module: "kubernetes-1.35", package: apiserverPackage },
  "kubectl-1.35": { module: "kubernetes-1.35", package: kubectlPackage },
  "kube-apiserver-1.37": { module: "kubernetes-1.37", package: apiserverPackage },
  "kubectl-1.37": { module: "kubernetes-1.37", package: kubectlPackage },
  /** For these programs, a file with the program's name and ".mod" pins other versions than go.mod does. */
  "client-go": { module: "operator", package: "./client-go" },
  "controller-runtime-0.21": { module: "operator", package: "./controller-runtime" },
  "controller-runtime-0.23": { module: "operator", package: "./controller-runtime" },
  "controller-runtime-0.25": { module: "operator", package: "./controller-runtime" },
} as const;

export type Program = keyof typeof programs;

/** True for a program that few commands need. `build.ts` builds it only if it is named. */
export function isOnDemand(program: Program): boolean {
  const { module } = programs[program];
  return ["kube-vip", "kustomize", "operator"].includes(module) || module.startsWith("kubernetes-");
}

/** Returns the name of `program` for this version of Kubernetes. */
export function programOf(program: "kube-apiserver" | "kubectl", version: Version): Program {
  return version === "1.36" ? program : `${program}-${version}`;
}

export function cacheFolder(): string {
  const named = process.env["WATCHKEEPER_CACHE"];
  if (named !== undefined && named !== "") return named;
  return join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "watchkeeper");
}

/**
 * Returns the hash of the names and contents of the files in `folder` that match `pattern`. It is part of the cache
 * folder's name for what is built from these files.
 */
export function hashOf(folder: string, pattern: string): string {
  const hash = createHash("sha256");
  for (const file of globSync(pattern, { cwd: folder }).toSorted()) {
    hash.update(file).update(readFileSync(join(folder, file)));
  }
  return hash.digest("hex").slice(0, 16);
}

/** Returns the path of `program`, which exists once `build.ts` has run. */
export function pathOf(program: Program): string {
  const { module } = programs[program];
  return join(cacheFolder(), `${module}-${hashOf(join(goFolder, module), "**/*.{mod,sum,go}")}`, program);
}

/**
 * Kinds of the Prometheus operator of which deploy/ and config/ have objects. Only their CRDs are needed, not the
 * operator.
 */
export const monitoringKinds = ["podmonitors", "servicemonitors", "prometheusrules"] as const;

/**
 * Returns the path of the kind's CRD as its authors publish it. go/prometheus-operator pins its version, and go.sum its
 * content.
 */
export function crdPath(kind: (typeof monitoringKinds)[number]): string {
  const module = "prometheus-operator";
  return join(cacheFolder(), `${module}-${hashOf(join(goFolder, module), "**/*.{mod,sum}")}`, `${kind}.yaml`);
}

/** Returns the Python interpreter of a virtual environment that contains exactly python/requirements.txt. */
export function pythonPath(): string {
  return join(cacheFolder(), `python-${hashOf(pythonFolder, "requirements.txt")}`, "bin", "python");
}

/** Commands that a suite may need on the machine, each with the Debian package that contains it. */
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

/** What `startCluster` needs. */
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
      return false; // not in this folder; the next folder may contain it
    }
  });
}

/** Returns what to install if this machine lacks `need`; undefined if it has it. */
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

/** Adds one test to a suite. `canRun` is false if the tests are skipped, so that `before` and `after` start nothing. */
export type Case = {
  (title: string, body: () => Promise<void>): void;
  readonly canRun: boolean;
};

/**
 * Returns the suite's `test`, or its `skip` if the machine lacks something; then it prints what is missing. In CI it
 * throws instead, because a suite that never runs proves nothing.
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

/** Prints a measured result. The test runner repeats such lines at the end. */
export { figure } from "../../support/figure.ts";
