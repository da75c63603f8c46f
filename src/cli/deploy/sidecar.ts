/**
 * `watchkeeper sidecar`: serves one application in its pod, without a configuration file. Clients need no change: they
 * find the sidecar's address in the usual variables, and CA and token at the usual paths.
 */
import { parseArgs } from "node:util";
import { Log } from "../../admin/events/log.ts";
import { wallClock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { type Config, parseConfig } from "../../config/config.ts";
import { isProblems, lineOf } from "../../config/problem.ts";
import { Journal } from "../../events/journal.ts";
import { type Running, startWatchkeeper } from "../../main.ts";
import { containFaults, exitCode, exitSoon, listenForSignals } from "../serve/signals.ts";
import { followCa, type PodDirectories, preparePod } from "./pod-files.ts";
import { type Shape, sidecarConfig, usual } from "./sidecar-shape.ts";

/** Exit codes: 0 stopped by a signal, 1 after an internal error, 2 the pod lacks something that the sidecar needs. */
export async function sidecar(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options });
  const shape = shapeOf(values, process.env);
  if (shape instanceof Failure) return complain(shape.message);
  const text = sidecarConfig(shape);
  const config = parseConfig(text, "sidecar");
  if (isProblems(config)) return complain(config.map(lineOf).join("\n"));
  if (values["print-config"]) {
    process.stdout.write(text);
    return 0;
  }
  return serve(config, { direct: shape.direct, shared: values.shared, state: shape.state });
}

const options = {
  port: { type: "string", default: String(usual.port) },
  "metrics-port": { type: "string", default: String(usual.metricsPort) },
  direct: { type: "string", default: usual.direct },
  shared: { type: "string", default: usual.shared },
  state: { type: "string", default: usual.state },
  "print-config": { type: "boolean", default: false },
} as const;

type Values = {
  readonly port: string;
  readonly "metrics-port": string;
  readonly direct: string;
  readonly state: string;
};

function shapeOf(values: Values, env: NodeJS.ProcessEnv): Shape | Failure {
  const host = env["KUBERNETES_SERVICE_HOST"];
  const port = env["KUBERNETES_SERVICE_PORT"];
  if (host === undefined || port === undefined)
    return new Failure(
      "bad-request",
      "client",
      "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: a sidecar runs in a pod",
    );
  const [own, metrics] = [Number(values.port), Number(values["metrics-port"])];
  return {
    direct: values.direct,
    state: values.state,
    port: own,
    metricsPort: metrics,
    service: { host, port },
  };
}

async function serve(config: Config, directories: PodDirectories): Promise<number> {
  const journal = new Journal(wallClock);
  const log = new Log(journal, { out: process.stdout, clock: wallClock, ...config.logging });
  const signals = listenForSignals();
  containFaults(journal, signals.raise);
  const running =
    (await preparePod(directories, wallClock)) ??
    (await startWatchkeeper(config, { journal, droppedLogLines: () => log.dropped }));
  if (running instanceof Failure) {
    exitSoon(2);
    return complain(running.message);
  }
  const stopFollowing = follow(running, { config, directories, journal });
  await signals.first;
  stopFollowing();
  await running.stop(signals.hurry);
  exitSoon(exitCode());
  return exitCode();
}

type Followed = { readonly config: Config; readonly directories: PodDirectories; readonly journal: Journal };

/** A changed cluster CA also applies to upstream connections. A CA that cannot be read changes nothing. */
function follow(running: Running, { config, directories, journal }: Followed): () => void {
  const file = `${directories.direct}/ca.crt`;
  const tell = (outcome: readonly string[] | Failure): void => {
    if (outcome instanceof Failure)
      journal.write({ kind: "config.refused", file, problems: [outcome.message] });
    else journal.write({ kind: "config.reloaded", file, waiting: [] });
  };
  const onChange = (failure: Failure | undefined): void => {
    if (failure === undefined) void running.reload(config).then(tell);
    else tell(failure);
  };
  return followCa(directories, { clock: wallClock, onChange });
}

function complain(text: string): number {
  process.stderr.write(`${text}\n`);
  return 2;
}
