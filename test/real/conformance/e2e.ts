/** Runs Kubernetes' e2e suite, and reads ginkgo's report. */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Child } from "../rig/child.ts";
import { pathOf } from "../rig/parts.ts";
import { excluded, idleExclusions } from "./excluded.ts";

export type Result = {
  readonly title: string;
  readonly passed: boolean;
  readonly seconds: number;
  /** Unix milliseconds. */
  readonly startedAt: number;
  /** When the spec first failed; if it passed, when it ended. Unix milliseconds. */
  readonly failedAt: number;
  /** Text of the failure; "" if the spec passed. */
  readonly message: string;
  /** The namespaces that the spec created, if it failed. */
  readonly namespaces: readonly string[];
};

/** The fields of ginkgo's `SpecReport` that are read here. */
type SpecReport = {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly ContainerHierarchyLabels: readonly (readonly string[] | null)[] | null;
  readonly LeafNodeLabels: readonly string[] | null;
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly State: string;
  /** Duration in nanoseconds. */
  readonly RunTime: number;
  readonly StartTime: string;
  readonly EndTime: string;
  readonly CapturedGinkgoWriterOutput?: string;
  readonly Failure?: { readonly Message: string; readonly TimelineLocation: { readonly Time: string } };
  readonly AdditionalFailures?: readonly { readonly Failure: { readonly Message: string } }[] | null;
};

export type Suite = {
  readonly kubeconfigFile: string;
  readonly folder: string;
  /** Parts of spec titles: only specs whose title contains one of them run. Default: all specs that can pass. */
  readonly only?: readonly string[];
  /** Number of processes that run specs at the same time. */
  readonly processes: number;
  readonly timeoutMinutes: number;
};

/** Escapes the text, because ginkgo expects regular expressions. */
function literally(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function argumentsOf(suite: Suite): string[] {
  const { kubeconfigFile, folder, only = [], processes, timeoutMinutes } = suite;
  const filters = [
    "--label-filter=Conformance",
    ...only.map((title) => `--focus=${literally(title)}`),
    ...excluded.flatMap(({ titles }) => titles.map((title) => `--skip=${literally(title)}`)),
  ];
  const report = [`--output-dir=${folder}`, "--json-report=report.json", "--no-color", "--succinct"];
  const limits = [`--procs=${processes}`, `--timeout=${timeoutMinutes}m`];
  const own = [
    `--kubeconfig=${kubeconfigFile}`,
    "--provider=skeleton",
    `--kubectl-path=${pathOf("kubectl")}`,
  ];
  return [...filters, ...report, ...limits, pathOf("e2e.test"), "--", ...own];
}

/** Runs the suite. Resolves with one result for each spec that ran. */
export async function runSuite(suite: Suite): Promise<readonly Result[]> {
  mkdirSync(suite.folder, { recursive: true });
  const logFile = join(suite.folder, "e2e.log");
  const child = new Child({ name: "e2e", command: pathOf("ginkgo"), args: argumentsOf(suite), logFile });
  // ginkgo exits with 1 if any spec failed. The report contains which ones.
  const outcome = await child.ended;
  const results = readReport(join(suite.folder, "report.json"));
  if (results.length === 0) throw new Error(`No spec was run (${outcome}):\n${child.tail()}`);
  return results;
}

function readReport(file: string): readonly Result[] {
  const reports = JSON.parse(readFileSync(file, "utf8")) as readonly {
    readonly SpecReports: readonly SpecReport[];
  }[];
  const specs = reports.flatMap((report) => report.SpecReports);
  // A failed set-up step is reported like a failed spec, because then some or all specs did not run.
  const broken = specs.filter(({ LeafNodeType, Failure }) => LeafNodeType !== "It" && Failure !== undefined);
  const conformance = specs.filter(isConformance);
  const idle = idleExclusions(conformance.map(titleOf));
  if (idle.length > 0) throw new Error(`Excluded, and not in the suite: ${idle.join("; ")}`);
  return [...broken, ...conformance.filter(({ State }) => State !== "skipped" && State !== "pending")].map(
    (spec) => ({
      title: titleOf(spec),
      passed: spec.State === "passed",
      seconds: spec.RunTime / 1e9,
      startedAt: Date.parse(spec.StartTime),
      failedAt: Date.parse(spec.Failure?.TimelineLocation.Time ?? spec.EndTime),
      message: messageOf(spec),
      namespaces: spec.State === "passed" ? [] : namespacesIn(spec.CapturedGinkgoWriterOutput ?? ""),
    }),
  );
}

function isConformance({ LeafNodeType, LeafNodeLabels, ContainerHierarchyLabels }: SpecReport): boolean {
  const labels = [
    ...(LeafNodeLabels ?? []),
    ...(ContainerHierarchyLabels ?? []).flatMap((some) => some ?? []),
  ];
  return LeafNodeType === "It" && labels.includes("Conformance");
}

function titleOf({ ContainerHierarchyTexts, LeafNodeText, LeafNodeType }: SpecReport): string {
  const words = [...(ContainerHierarchyTexts ?? []), LeafNodeText].filter((text) => text !== "");
  return words.length > 0 ? words.join(" ") : LeafNodeType;
}

function messageOf({ State, Failure, AdditionalFailures }: SpecReport): string {
  if (Failure === undefined || State === "passed") return "";
  const all = [Failure.Message, ...(AdditionalFailures ?? []).map((more) => more.Failure.Message)];
  return all.join("\n");
}

function namespacesIn(output: string): readonly string[] {
  return [...new Set([...output.matchAll(/Destroying namespace "([^"]+)"/g)].map(([, name = ""]) => name))];
}
