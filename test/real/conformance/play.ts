/**
 * One run of the suite on a cluster of its own: directly at an apiserver, through the proxy, or through the proxy while
 * apiservers fail.
 */
import { join } from "node:path";
import { Faults } from "../load/faults.ts";
import { type Cluster, startCluster } from "../rig/cluster.ts";
import { ControlPlane, type Reflectors } from "../rig/control-plane.ts";
import { Proxy } from "../rig/proxy.ts";
import { saidSince } from "../rig/said.ts";
import { costOf } from "./costs.ts";
import { type Result, runSuite } from "./e2e.ts";

export const modes = ["straight", "through", "through with faults"] as const;
export type Mode = (typeof modes)[number];

export type Plan = {
  readonly only?: readonly string[];
  readonly processes: number;
  readonly timeoutMinutes: number;
  readonly faultEveryMs: number;
};

/** `cost`: the accepted cost of a fault (costs.ts) that explains the spec's failure; undefined if none does. */
export type Judged = Result & { readonly cost?: string | undefined };

export type Played = {
  readonly mode: Mode;
  readonly results: readonly Judged[];
  readonly minutes: number;
  readonly faults: readonly string[];
  /**
   * What went wrong apart from the specs, such as a control plane that exited or a backend that did not become ready
   * again.
   */
  readonly wrong: readonly string[];
  /** Repeated lists and warnings in the logs of kube-controller-manager and kube-scheduler (rig/control-plane.ts). */
  readonly reflectors: Reflectors;
};

function startProxy(cluster: Cluster): Promise<Proxy> {
  const { folder, pki, frontProxy } = cluster;
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  const tls = { caFile: pki.ca.certFile, serverName: "kubernetes.default.svc", frontProxy };
  return Proxy.start({
    folder,
    pki,
    backends,
    listener: { identity: { clientCerts: "FrontProxy" } },
    listenerTls: { clientCAFile: pki.ca.certFile },
    config: { clusters: [{ name: "default", backends, tls }] },
  });
}

export async function play(mode: Mode, plan: Plan): Promise<Played> {
  const cluster = await startCluster({
    apiservers: 3,
    serviceAccounts: true,
    // An apiserver compacts etcd only after it has run for this interval. With the default of five minutes, no
    // apiserver would run long enough between two faults.
    flags: ["--allow-privileged", "--etcd-compaction-interval=30s"],
    etcdFlags: ["--watch-progress-notify-interval=5s"], // as kubeadm sets it
  });
  try {
    const proxy = mode === "straight" ? undefined : await startProxy(cluster);
    try {
      return await playOn(cluster, proxy, mode, plan);
    } finally {
      await proxy?.stop();
    }
  } finally {
    await cluster.stop();
  }
}

async function playOn(cluster: Cluster, proxy: Proxy | undefined, mode: Mode, plan: Plan): Promise<Played> {
  await proxy?.settled(cluster.apiservers.length);
  const controlPlane = await ControlPlane.start(cluster, proxy?.url ?? cluster.admin.url);
  try {
    const began = Date.now();
    const isHurt = mode === "through with faults" && proxy !== undefined;
    const faults = isHurt ? new Faults(cluster, proxy, plan.faultEveryMs) : undefined;
    const { only, processes, timeoutMinutes } = plan;
    const kubeconfigFile = controlPlane.kubeconfig("e2e");
    const suite = { kubeconfigFile, folder: join(cluster.folder, "e2e"), processes, timeoutMinutes };
    const results = await runSuite(only === undefined ? suite : { ...suite, only });
    const minutes = (Date.now() - began) / 60_000;
    await faults?.stop();
    const journal = faults === undefined ? [] : saidSince(proxy?.logFile ?? "", 0);
    const outages = faults?.outages ?? [];
    const judged = results.map((one) => (one.passed ? one : { ...one, cost: costOf(one, journal, outages) }));
    return {
      mode,
      results: judged,
      minutes,
      faults: faults?.played ?? [],
      wrong: [
        ...controlPlane.ended.map((name) => `${name} has ended`),
        ...(faults?.unsettled ?? []),
        ...(proxy?.isRunning === false ? ["the proxy has ended"] : []),
      ],
      reflectors: controlPlane.reflectors(),
    };
  } finally {
    await controlPlane.stop();
  }
}
