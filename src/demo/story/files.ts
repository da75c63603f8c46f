/** The demo's files, in a directory that only its user can read: keys, a configuration, a kubeconfig. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { type Authority, createAuthority, type Pair } from "../../pki/pki.ts";

/** An apiserver as a configuration names it. */
export type DemoBackend = { readonly name: string; readonly host: string; readonly port: number };

/** Embedded apiservers at these loopback ports. */
export function embeddedAt(ports: readonly number[]): readonly DemoBackend[] {
  return ports.map((port, index) => ({ name: `apiserver-${index + 1}`, host: "127.0.0.1", port }));
}

/** Names and addresses of the apiservers and the proxy. */
const hosts = ["127.0.0.1", "::1", "localhost", "kubernetes.default.svc"];

export class DemoFiles {
  readonly directory: string;
  readonly authority: Authority;

  private constructor(authority: Authority) {
    this.directory = mkdtempSync(join(tmpdir(), "watchkeeper-demo-"));
    this.authority = authority;
  }

  static async make(clock: Clock): Promise<DemoFiles> {
    return new DemoFiles(await createAuthority({ name: "watchkeeper demo", clock }));
  }

  /** Issues a serving certificate. */
  issue(name: string): Pair {
    return this.authority.issue({ name, hosts });
  }

  /**
   * Writes a configuration as an operator would, with additional lines for its listener and an additional CA for its
   * backends; returns its path.
   */
  writeConfig(
    backends: readonly DemoBackend[],
    port: number,
    { listener = "", ca = "" }: { readonly listener?: string; readonly ca?: string } = {},
  ): string {
    const { certificate, key } = this.issue("watchkeeper");
    const paths = {
      ca: this.write("ca.crt", `${this.authority.certificate}${ca}`),
      certificate: this.write("proxy.crt", certificate),
      key: this.write("proxy.key", key),
    };
    return this.write("watchkeeper.yaml", configText(backends, port, paths, listener));
  }

  /** For kubectl; returns its path. JSON is valid YAML. */
  writeKubeconfig(address: string): string {
    const ca = Buffer.from(this.authority.certificate).toString("base64");
    const name = "watchkeeper-demo";
    const kubeconfig = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name, cluster: { server: `https://${address}`, "certificate-authority-data": ca } }],
      // Any token works: the demo's apiservers do not authenticate clients.
      users: [{ name, user: { token: "demo" } }],
      contexts: [{ name, context: { cluster: name, user: name, namespace: "default" } }],
      "current-context": name,
    };
    return this.write("kubeconfig", `${JSON.stringify(kubeconfig, undefined, 2)}\n`);
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Returns its path. */
  write(name: string, text: string): string {
    const path = join(this.directory, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  }
}

function configText(
  backends: readonly DemoBackend[],
  port: number,
  paths: { readonly ca: string; readonly certificate: string; readonly key: string },
  listener: string,
): string {
  const rows = backends.map(
    ({ name, host, port: at }) => `      - {name: ${name}, url: "https://${host}:${at}"}`,
  );
  return `# Made by "watchkeeper demo": two apiservers, each a process of its own, the proxy in front of them.
apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
metadata:
  name: demo
listeners:
  - name: kube
    address: 127.0.0.1:${port}
    tls:
      certFile: ${JSON.stringify(paths.certificate)}
      keyFile: ${JSON.stringify(paths.key)}
${listener}clusters:
  - name: demo
    backends:
${rows.join("\n")}
    tls:
      caFile: ${JSON.stringify(paths.ca)}
      serverName: kubernetes.default.svc
drain:
  shutdownDelay: 0s
  timeout: 1s
admin:
  address: 127.0.0.1:0
  metricsAddress: 127.0.0.1:0
logging:
  format: Text
`;
}
