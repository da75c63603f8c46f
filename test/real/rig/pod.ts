/**
 * A pod without a kubelet. It has the volumes that `watchkeeper manifest sidecar` specifies, with the kubelet's file
 * layout. Its processes see them at the containers' paths, because they run in mount namespaces of their own.
 */
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../../support/free-port.ts";
import { order } from "./ask.ts";
import { Call, type Output } from "./call.ts";
import { Child } from "./child.ts";
import type { Cluster } from "./cluster.ts";

const bin = fileURLToPath(new URL("../../../bin/watchkeeper.js", import.meta.url));

/** The contents of the files that a kubelet projects into the volume. */
export type Projected = { readonly token: string; readonly ca: string };

type Ports = { readonly port: number; readonly metrics: number };

export class Pod {
  readonly #cluster: Cluster;
  readonly #namespace: string;
  /** The folder that processes of the pod see as /run, and so as /var/run. */
  readonly #run: string;
  readonly #ports: Ports;
  #round = 0;
  #sidecar: Child | undefined;

  private constructor(cluster: Cluster, namespace: string, ports: Ports) {
    this.#cluster = cluster;
    this.#namespace = namespace;
    this.#ports = ports;
    this.#run = join(cluster.folder, `pod-${namespace}`);
    for (const directory of ["secrets/watchkeeper", "secrets/kubernetes.io/serviceaccount", "watchkeeper"])
      mkdirSync(join(this.#run, directory), { recursive: true });
  }

  static async make(cluster: Cluster, namespace: string): Promise<Pod> {
    return new Pod(cluster, namespace, { port: await freePort(), metrics: await freePort() });
  }

  /** Replaces the files as the kubelet's atomic writer does: it writes a new directory, and then replaces one link. */
  project({ token, ca }: Projected): void {
    const directory = join(this.#run, "secrets/watchkeeper");
    const [before, now] = [`..round-${this.#round}`, `..round-${this.#round + 1}`];
    this.#round += 1;
    mkdirSync(join(directory, now));
    const files = { token, "ca.crt": ca, namespace: this.#namespace };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, now, name), text);
    symlinkSync(now, join(directory, "..data_tmp"));
    renameSync(join(directory, "..data_tmp"), join(directory, "..data"));
    for (const name of Object.keys(files)) {
      if (!existsSync(join(directory, name))) symlinkSync(join("..data", name), join(directory, name));
    }
    rmSync(join(directory, before), { recursive: true, force: true });
  }

  /**
   * Starts `watchkeeper sidecar` with no flags except ports of the test. The address of the Kubernetes service is that
   * of the first apiserver.
   */
  async startSidecar(): Promise<void> {
    const { address } = this.#cluster.apiserver(0);
    const { port, metrics } = this.#ports;
    const flags = ["--port", String(port), "--metrics-port", String(metrics)];
    const [command, ...args] = this.#inside(process.execPath, [bin, "sidecar", ...flags]);
    this.#sidecar = new Child({
      name: "sidecar",
      command,
      args,
      logFile: this.logFile,
      env: { ...process.env, KUBERNETES_SERVICE_HOST: address, KUBERNETES_SERVICE_PORT: "6443" },
    });
    // As the startup probe in the manifest.
    await this.#sidecar.ready(20_000, async () => (await fetch(`${this.metricsUrl}/readyz`)).status === 200);
  }

  get logFile(): string {
    return join(this.#cluster.folder, `sidecar-${this.#namespace}.log`);
  }

  get metricsUrl(): string {
    return `http://127.0.0.1:${this.#ports.metrics}`;
  }

  get sidecarPid(): number {
    return this.#sidecar?.pid ?? -1;
  }

  /** Kills the sidecar container, as the out-of-memory killer does. */
  async killSidecar(): Promise<void> {
    this.#sidecar?.signal("SIGKILL");
    await this.#sidecar?.ended;
  }

  async stop(): Promise<void> {
    await this.#sidecar?.stop();
  }

  /**
   * Starts the application. It has the two environment variables of its manifest and knows nothing else of the proxy.
   */
  start(command: string, args: readonly string[], timeoutMs = 60_000): Call {
    const [program, ...rest] = this.#inside(command, args);
    const env = { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: String(this.#ports.port) };
    return new Call(program, rest, { env, timeoutMs });
  }

  run(command: string, args: readonly string[]): Promise<Output> {
    return this.start(command, args).ended;
  }

  #inside(command: string, args: readonly string[]): [string, ...string[]] {
    const script = 'mount --bind "$0" /run && exec "$@"';
    return ["unshare", "--mount", "sh", "-c", script, this.#run, command, ...args];
  }
}

/** Returns a token of `account` that is valid as long as the Secret `until` exists. */
export async function boundToken(
  cluster: Cluster,
  {
    namespace,
    account,
    until,
  }: { readonly namespace: string; readonly account: string; readonly until: string },
): Promise<string> {
  const base = `/api/v1/namespaces/${namespace}`;
  const body = { apiVersion: "v1", kind: "Secret", metadata: { name: until } };
  const secret = JSON.parse(
    await order(cluster.admin, { method: "POST", path: `${base}/secrets`, body }),
  ) as { metadata: { uid: string } };
  const ref = { kind: "Secret", apiVersion: "v1", name: until, uid: secret.metadata.uid };
  const request = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: { audiences: [], expirationSeconds: 600, boundObjectRef: ref },
  };
  const path = `${base}/serviceaccounts/${account}/token`;
  const answer = JSON.parse(await order(cluster.admin, { method: "POST", path, body: request })) as {
    status: { token: string };
  };
  return answer.status.token;
}
