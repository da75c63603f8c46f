/** `watchkeeper manifest static-pod|deployment|sidecar`: prints Kubernetes manifests to stdout. Changes no file. */
import { Failure } from "../../../base/failure.ts";
import { limits } from "../../../base/limits.ts";
import { quote } from "../../config/problem.ts";
import { docsPage } from "../../program/docs.ts";
import { releasedImage } from "../../program/version.ts";
import { readInput } from "../commands/input.ts";
import { type Given, given, usage } from "../commands/options.ts";
import { failed } from "../commands/screen.ts";
import { deploymentText } from "./deployment.ts";
import { addSidecar } from "./patch-workload.ts";
import type { NamedBackend } from "./shape-config.ts";
import { usual } from "./sidecar-shape.ts";
import { staticPod, staticPodConfig } from "./static-pod.ts";

type Printed = { readonly text: string; readonly remarks: readonly string[] };

/** Exit codes: 0 printed, 1 the workload cannot have a sidecar, 2 usage error. */
export async function manifest(args: string[]): Promise<number> {
  const options = given("manifest", args);
  if (options instanceof Failure) return failed(options);
  const print = printers.get(options.words[0] ?? "");
  const printed = await print?.(options);
  if (printed === undefined) return 2;
  if (printed instanceof Failure) return failed(printed);
  for (const one of printed.remarks) process.stderr.write(`note: ${one}\n`);
  process.stdout.write(printed.text);
  return 0;
}

function staticPodPrinted(options: Given): Printed | Failure {
  const ports = portsOf(options, 8443);
  if (ports instanceof Failure) return ports;
  const backends: NamedBackend[] = [];
  for (const word of options.all("backend")) {
    const backend = backendOf(word);
    if (backend instanceof Failure) return backend;
    backends.push(backend);
  }
  const flags = {
    isPassthrough: options.has("passthrough"),
    isSecond: options.has("second"),
    hasSecureMetrics: options.has("secure-metrics"),
  };
  const wishes = { ...ports, ...flags, backends };
  if (options.has("print-config"))
    return backends.length === 0
      ? usage("--backend is missing: NAME=URL of each kube-apiserver")
      : { text: staticPodConfig(wishes), remarks: [] };
  const image = imageOf(options);
  return image instanceof Failure ? image : { text: staticPod({ ...wishes, image }), remarks: [] };
}

function deploymentPrinted(options: Given): Printed | Failure {
  // At least two, because clients would notice the restart of a single replica.
  const replicas = options.whole("replicas", 2, [2, 50]);
  if (replicas instanceof Failure) return replicas;
  const namespace = options.text("namespace") ?? "watchkeeper";
  // Rejects a namespace that is no RFC 1123 label.
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(namespace))
    return usage(`${quote(namespace)} is not a valid namespace`);
  const image = imageOf(options);
  if (image instanceof Failure) return image;
  const tls = `it serves with the Secret "watchkeeper-tls" of namespace ${quote(namespace)}, which you must create`;
  return { text: deploymentText({ image, namespace, replicas }), remarks: [tls] };
}

async function sidecarPrinted(options: Given): Promise<Printed | Failure> {
  const file = options.text("file");
  if (file === undefined) return usage("--file is missing: a manifest, or - for stdin");
  const ports = portsOf(options, usual.port);
  if (ports instanceof Failure) return ports;
  const image = imageOf(options);
  if (image instanceof Failure) return image;
  const text = await readInput(file, limits.manifestBytes);
  if (text instanceof Failure) return usage(`${file}: the file ${text.message}`);
  return addSidecar(text, file, { image, ...ports });
}

const printers = new Map<string, (options: Given) => Printed | Failure | Promise<Printed | Failure>>([
  ["static-pod", staticPodPrinted],
  ["deployment", deploymentPrinted],
  ["sidecar", sidecarPrinted],
]);

function imageOf(options: Given): string | Failure {
  const image = options.text("image") ?? releasedImage();
  if (image === undefined)
    return usage(
      `--image is missing: the name of watchkeeper's image in your registry. \`npm run release\` makes the image: ${docsPage("release.md")}`,
    );
  if (/^[\w.:/@-]{1,512}$/.test(image)) return image;
  return usage(
    `--image ${quote(image)} is not the name of an image, such as registry.example.com/watchkeeper:0.1.0`,
  );
}

function portsOf(options: Given, usualPort: number): { port: number; metricsPort: number } | Failure {
  const port = options.whole("port", usualPort, [1, 65_535]);
  const metricsPort = options.whole("metrics-port", usual.metricsPort, [1, 65_535]);
  if (port instanceof Failure) return port;
  if (metricsPort instanceof Failure) return metricsPort;
  return port === metricsPort ? usage("--port and --metrics-port must differ") : { port, metricsPort };
}

function backendOf(word: string): NamedBackend | Failure {
  const [, name = "", url = ""] = /^([a-z0-9][a-z0-9.-]*)=(https:\/\/\S+)$/.exec(word) ?? [];
  if (URL.canParse(url)) return { name, url };
  return usage(`--backend ${quote(word)} is not NAME=URL, such as cp-1=https://10.0.0.11:6443`);
}
