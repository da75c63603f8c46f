/** `watchkeeper manifest static-pod|deployment|sidecar`: prints Kubernetes manifests to stdout. Changes no file. */
import { parseArgs } from "node:util";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { readText } from "../../base/read-text.ts";
import { quote } from "../../config/problem.ts";
import { ownVersion } from "../../version.ts";
import { deploymentText } from "./deployment.ts";
import { addSidecar } from "./patch-workload.ts";
import type { NamedBackend } from "./shape-config.ts";
import { usual } from "./sidecar-shape.ts";
import { staticPod, staticPodConfig } from "./static-pod.ts";

/** The text for stdout, and remarks for the operator. */
type Printed = { readonly text: string; readonly remarks: readonly string[] };

const kinds = { "static-pod": staticPodPrinted, deployment: deploymentPrinted, sidecar: sidecarPrinted };

/** Exit codes: 0 printed, 1 the workload cannot have a sidecar, 2 usage error. */
export async function manifest([what = "", ...args]: string[]): Promise<number> {
  const print =
    what === "static-pod" || what === "deployment" || what === "sidecar" ? kinds[what] : undefined;
  if (print === undefined) return complain(`Say "manifest static-pod", "deployment" or "sidecar -f FILE"`, 2);
  const printed = await print(args);
  if (printed instanceof Failure) return complain(printed.message, printed.code === "bad-request" ? 2 : 1);
  for (const one of printed.remarks) process.stderr.write(`note: ${one}\n`);
  process.stdout.write(printed.text);
  return 0;
}

const image = { type: "string" } as const;
const metricsPort = { type: "string", default: String(usual.metricsPort) } as const;

function staticPodPrinted(args: string[]): Printed | Failure {
  const { values } = parseArgs({
    args,
    options: {
      image,
      port: { type: "string", default: "8443" },
      "metrics-port": metricsPort,
      "print-config": { type: "boolean", default: false },
      passthrough: { type: "boolean", default: false },
      backend: { type: "string", multiple: true, default: [] },
    },
  });
  const ports = portsOf(values.port, values["metrics-port"]);
  if (ports instanceof Failure) return ports;
  const backends: NamedBackend[] = [];
  for (const word of values.backend) {
    const backend = backendOf(word);
    if (backend instanceof Failure) return backend;
    backends.push(backend);
  }
  const named = imageOf(values.image);
  const wishes = { ...ports, image: named.image, isPassthrough: values.passthrough, backends };
  if (!values["print-config"]) return { text: staticPod(wishes), remarks: named.remarks };
  if (backends.length === 0) return usage("--backend is missing: NAME=URL of each kube-apiserver");
  return { text: staticPodConfig(wishes), remarks: [] };
}

function deploymentPrinted(args: string[]): Printed | Failure {
  const { values } = parseArgs({
    args,
    options: {
      image,
      namespace: { type: "string", default: "watchkeeper" },
      replicas: { type: "string", default: "2" },
    },
  });
  const replicas = Number(values.replicas);
  if (!Number.isInteger(replicas) || replicas < 2 || replicas > 50)
    return usage("--replicas is a number from 2 to 50: with one, clients notice a restart");
  // RFC 1123: the syntax of namespace names.
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(values.namespace))
    return usage(`${quote(values.namespace)} is not a valid namespace`);
  const named = imageOf(values.image);
  const tls = `it serves with the Secret "watchkeeper-tls" of namespace ${quote(values.namespace)}, which you must create`;
  return {
    text: deploymentText({ image: named.image, namespace: values.namespace, replicas }),
    remarks: [...named.remarks, tls],
  };
}

async function sidecarPrinted(args: string[]): Promise<Printed | Failure> {
  const { values } = parseArgs({
    args,
    options: {
      image,
      file: { type: "string", short: "f" },
      port: { type: "string", default: String(usual.port) },
      "metrics-port": metricsPort,
    },
  });
  const { file } = values;
  if (file === undefined) return usage("--file is missing: a manifest, or - for stdin");
  const ports = portsOf(values.port, values["metrics-port"]);
  if (ports instanceof Failure) return ports;
  const named = imageOf(values.image);
  const text = file === "-" ? await stdinText() : readText(file, limits.manifestBytes);
  if (text instanceof Failure) return usage(`${file}: the file ${text.message}`);
  const patched = addSidecar(text, file, { image: named.image, ...ports });
  if (patched instanceof Failure) return patched;
  return { text: patched.text, remarks: [...named.remarks, ...patched.remarks] };
}

function imageOf(asked: string | undefined): { readonly image: string; readonly remarks: readonly string[] } {
  const name = asked ?? `watchkeeper:${ownVersion()}`;
  return {
    image: name,
    remarks: asked === undefined ? [`the image is ${quote(name)}: --image sets another`] : [],
  };
}

function portsOf(port: string, metrics: string): { port: number; metricsPort: number } | Failure {
  const ports = { port: Number(port), metricsPort: Number(metrics) };
  if (isPort(ports.port) && isPort(ports.metricsPort) && ports.port !== ports.metricsPort) return ports;
  return usage("--port and --metrics-port must be two different ports from 1 to 65535");
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}

function backendOf(word: string): NamedBackend | Failure {
  const [, name = "", url = ""] = /^([a-z0-9][a-z0-9.-]*)=(https:\/\/\S+)$/.exec(word) ?? [];
  if (URL.canParse(url)) return { name, url };
  return usage(`--backend ${quote(word)} is not NAME=URL, such as cp-1=https://10.0.0.11:6443`);
}

function usage(message: string): Failure {
  return new Failure("bad-request", "client", message);
}

async function stdinText(): Promise<string | Failure> {
  let text = "";
  process.stdin.setEncoding("utf8");
  for await (const chunk of process.stdin) {
    text += String(chunk);
    if (text.length > limits.manifestBytes)
      return new Failure("bad-file", "client", `is larger than ${limits.manifestBytes} bytes`);
  }
  return text;
}

function complain(text: string, code: number): number {
  process.stderr.write(`${text}\n`);
  return code;
}
