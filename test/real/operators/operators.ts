/** The operators: about 20 processes that use the common client libraries of operators. */
import { join } from "node:path";
import type { Built } from "../rig/built.ts";
import { type Cluster, tokenOf } from "../rig/cluster.ts";
import { Kept } from "../rig/kept.ts";
import { writeKubeconfig } from "../rig/kubeconfig.ts";
import { goOperator, javaOperator, nodeOperator, pythonOperator, rustOperator } from "./programs.ts";

export type Operator = {
  /** The operator's name. It is also its namespace and the name of its Lease. */
  readonly name: string;
  readonly made: Built;
  /** Number of processes that share the Lease. 1 if the library has no leader election. */
  readonly replicas: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: readonly string[];
  /** True if its watches use WebSockets. No proxy can continue such a watch on another apiserver. */
  readonly hasWebSockets?: boolean;
};

export const operators: readonly Operator[] = [
  { name: "controller-runtime-021", made: goOperator("controller-runtime-0.21"), replicas: 2 },
  { name: "controller-runtime-023", made: goOperator("controller-runtime-0.23"), replicas: 2 },
  { name: "controller-runtime-025", made: goOperator("controller-runtime-0.25"), replicas: 2 },
  { name: "client-go", made: goOperator("client-go"), replicas: 2 },
  { name: "client-go-http1", made: goOperator("client-go"), replicas: 2, env: { DISABLE_HTTP2: "true" } },
  { name: "kube-rs-a", made: rustOperator, replicas: 1 },
  { name: "kube-rs-b", made: rustOperator, replicas: 1 },
  { name: "fabric8", made: javaOperator("fabric8", "Fabric8"), replicas: 2, flags: ["-http=true"] },
  { name: "fabric8-websocket", made: javaOperator("fabric8", "Fabric8"), replicas: 1, hasWebSockets: true },
  { name: "java-official", made: javaOperator("official", "Official"), replicas: 2 },
  { name: "python", made: pythonOperator, replicas: 2 },
  { name: "node-a", made: nodeOperator, replicas: 1 },
  { name: "node-b", made: nodeOperator, replicas: 1 },
];

/** Returns the user of a replica. The audit log identifies the replica by it. */
export function userOf({ name }: Operator, replica: number): string {
  return `${name}-${replica}`;
}

/** Returns the users for `ClusterOptions.users`. */
export function usersOf(all: readonly Operator[]): Record<string, readonly string[]> {
  const names = all.flatMap((one) =>
    Array.from({ length: one.replicas }, (_, replica) => userOf(one, replica)),
  );
  return Object.fromEntries(names.map((name) => [name, ["system:masters"]]));
}

/** Starts all replicas of an operator, each with the flags -kubeconfig, -name and -replica. */
export function startOperator(operator: Operator, cluster: Cluster, url: string): readonly Kept[] {
  const { folder, caFile } = cluster;
  return Array.from({ length: operator.replicas }, (_, replica) => {
    const name = userOf(operator, replica);
    const access = { url, caFile, token: tokenOf(name) };
    const kubeconfig = writeKubeconfig(join(folder, `${name}.kubeconfig`), access);
    const [command, ...args] = operator.made.command();
    const flags = [`-kubeconfig=${kubeconfig}`, `-name=${operator.name}`, `-replica=${replica}`];
    return new Kept({
      name,
      command,
      args: [...args, ...flags, ...(operator.flags ?? [])],
      logFile: join(folder, `${name}.log`),
      env: { ...process.env, ...operator.env },
    });
  });
}
