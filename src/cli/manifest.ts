/** `watchkeeper manifest sidecar -f FILE`: the file's workloads with a sidecar in each, on stdout. The file stays as it is. */
import { parseArgs } from "node:util";
import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";
import { quote } from "../problem.ts";
import { readText } from "../read-text.ts";
import { ownVersion } from "../version.ts";
import { addSidecar } from "./patch-workload.ts";
import type { Addition } from "./sidecar-pod.ts";
import { usual } from "./sidecar-shape.ts";

/** Exit codes: 0 printed, 1 the manifest cannot have a sidecar, 2 usage. */
export async function manifest([what = "", ...args]: string[]): Promise<number> {
  const wanted = what === "sidecar" ? wantedOf(args) : usage(`Say "manifest sidecar -f FILE"`);
  if (wanted instanceof Failure) return complain(wanted.message, 2);
  const { file, addition } = wanted;
  const text = file === "-" ? await stdinText() : readText(file, limits.manifestBytes);
  if (text instanceof Failure) return complain(`${file}: the file ${text.message}`, 2);
  const patched = addSidecar(text, file, addition);
  if (patched instanceof Failure) return complain(patched.message, 1);
  for (const one of [...wanted.remarks, ...patched.remarks]) process.stderr.write(`note: ${one}\n`);
  process.stdout.write(patched.text);
  return 0;
}

type Wanted = { readonly file: string; readonly addition: Addition; readonly remarks: readonly string[] };

function wantedOf(args: string[]): Wanted | Failure {
  const { values } = parseArgs({ args, options });
  if (values.file === undefined) return usage("--file is missing: a manifest, or - for stdin");
  const [port, metricsPort] = [Number(values.port), Number(values["metrics-port"])];
  if (!isPort(port) || !isPort(metricsPort) || port === metricsPort)
    return usage("--port and --metrics-port are two ports from 1 to 65535");
  const image = values.image ?? `watchkeeper:${ownVersion()}`;
  const remarks = values.image === undefined ? [`the image is ${quote(image)}: --image names another`] : [];
  return { file: values.file, addition: { image, port, metricsPort }, remarks };
}

function usage(message: string): Failure {
  return new Failure("bad-request", "client", message);
}

const options = {
  file: { type: "string", short: "f" },
  image: { type: "string" },
  port: { type: "string", default: String(usual.port) },
  "metrics-port": { type: "string", default: String(usual.metricsPort) },
} as const;

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
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
