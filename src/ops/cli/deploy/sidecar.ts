/**
 * `watchkeeper sidecar`: serves the application in its pod, without a configuration file. The application needs no
 * change, because it finds the sidecar's address, CA and token in the environment variables and files that every
 * in-cluster client reads.
 */
import { wallClock } from "../../../base/clock.ts";
import { Failure } from "../../../base/failure.ts";
import { guarded } from "../../../events/guarded-clock.ts";
import type { Journal } from "../../../events/journal.ts";
import { type Running, startWatchkeeper } from "../../../main.ts";
import { type Config, parseConfig } from "../../config/config.ts";
import { isProblems, lineOf } from "../../config/problem.ts";
import { type Given, given, usage } from "../commands/options.ts";
import { complain, failed } from "../commands/screen.ts";
import { beginServing, exitCode, exitSoon } from "../serve/signals.ts";
import { followCa, type PodDirectories, preparePod } from "./pod-files.ts";
import { type Shape, sidecarConfig, usual } from "./sidecar-shape.ts";

/** Exit codes: 0 stopped by a signal, 1 stopped after an internal error, 2 the pod lacks a file or a variable. */
export async function sidecar(args: string[]): Promise<number> {
  const options = given("sidecar", args);
  if (options instanceof Failure) return failed(options);
  const shape = shapeOf(options, process.env);
  if (shape instanceof Failure) return failed(shape);
  const text = sidecarConfig(shape);
  const config = parseConfig(text, "sidecar");
  if (isProblems(config)) return complain(config.map(lineOf).join("\n"), 2);
  if (options.has("print-config")) {
    process.stdout.write(text);
    return 0;
  }
  return serve(config, shape);
}

type SidecarOptions = Shape & PodDirectories;

function shapeOf(options: Given, env: NodeJS.ProcessEnv): SidecarOptions | Failure {
  const [host, port] = [env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]];
  if (host === undefined || port === undefined)
    return usage("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: a sidecar runs in a pod");
  const own = options.whole("port", usual.port, [1, 65_535]);
  const metricsPort = options.whole("metrics-port", usual.metricsPort, [1, 65_535]);
  if (own instanceof Failure) return own;
  if (metricsPort instanceof Failure) return metricsPort;
  return {
    direct: options.text("direct") ?? usual.direct,
    shared: options.text("shared") ?? usual.shared,
    state: options.text("state") ?? usual.state,
    port: own,
    metricsPort,
    service: { host, port },
  };
}

async function serve(config: Config, directories: PodDirectories): Promise<number> {
  const { signals, parts } = beginServing({ out: process.stdout, ...config.logging });
  const running = (await preparePod(directories, wallClock)) ?? (await startWatchkeeper(config, parts));
  if (running instanceof Failure) return exitSoon(complain(running.message, 2));
  const stopFollowing = follow(running, { config, directories, journal: parts.journal });
  await signals.first;
  stopFollowing();
  await running.stop(signals.hurry);
  return exitSoon(exitCode());
}

type Followed = { readonly config: Config; readonly directories: PodDirectories; readonly journal: Journal };

/**
 * Reloads the cluster's CA for upstream connections whenever its file changes. Keeps the old CA if the new one is
 * unreadable.
 */
function follow(running: Running, { config, directories, journal }: Followed): () => void {
  const file = `${directories.direct}/ca.crt`;
  const report = (outcome: readonly string[] | Failure): void => {
    if (outcome instanceof Failure)
      journal.write({ kind: "config.refused", file, problems: [outcome.message] });
    else journal.write({ kind: "config.reloaded", file, sha256: config.sha256, waiting: [] });
  };
  const onChange = (failure: Failure | undefined): void => {
    if (failure === undefined) void running.reload(config).then(report);
    else report(failure);
  };
  return followCa(directories, { clock: guarded(wallClock, journal, "configuration"), onChange });
}
