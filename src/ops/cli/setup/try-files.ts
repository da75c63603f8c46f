/** Writes the files of `try` (keys, configuration, kubeconfig) to a directory that only the user can read. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../../base/clock.ts";
import { type Authority, createAuthority, type Pair } from "../../pki/pki.ts";
import {
  type ClusterAccess,
  type Context,
  type FileOrText,
  impersonationOf,
  type UserPair,
} from "./kubeconfig.ts";

export type TryOptions = {
  readonly context: Context;
  readonly access: ClusterAccess;
  /** The user's certificate, which the proxy presents upstream for users of the new kubeconfig; undefined: none. */
  readonly pair: UserPair | undefined;
  readonly port: number;
  /** True if the proxy must discover the apiservers behind the kubeconfig's server. */
  readonly discovers: boolean;
};

export class TryFiles {
  readonly directory: string;
  readonly #authority: Authority;

  private constructor(authority: Authority) {
    this.directory = mkdtempSync(join(tmpdir(), "watchkeeper-try-"));
    this.#authority = authority;
  }

  static async make(clock: Clock): Promise<TryFiles> {
    return new TryFiles(await createAuthority({ name: "watchkeeper try", clock }));
  }

  writeConfig(options: TryOptions): { readonly text: string; readonly file: string } {
    const text = `${JSON.stringify(this.#config(options), undefined, 2)}\n`;
    return { text, file: this.#write("watchkeeper.yaml", text) };
  }

  #config({ context, access, pair, port, discovers }: TryOptions): object {
    const { certificate, key } = this.#authority.issue({
      name: "watchkeeper",
      hosts: ["127.0.0.1", "localhost"],
    });
    const own = { certFile: this.#write("tls.crt", certificate), keyFile: this.#write("tls.key", key) };
    const ca = this.#write("ca.crt", this.#authority.certificate);
    // The discovered apiservers serve their API at the root.
    const server = { name: "server", url: access.origin + (discovers ? "" : access.path) };
    const lent = pair && {
      certFile: this.#half("user.crt", pair.certificate),
      keyFile: this.#half("user.key", pair.key),
    };
    return {
      apiVersion: "watchkeeper.dev/v1alpha2",
      kind: "WatchkeeperConfiguration",
      metadata: { name: "try" },
      listeners: [
        {
          name: "try",
          address: `127.0.0.1:${port}`,
          tls: lent === undefined ? own : { ...own, clientCAFile: ca },
          ...(lent === undefined ? {} : { identity: { clientCerts: "ActAsImpersonator" } }),
        },
      ],
      clusters: [
        {
          name: "try",
          ...(discovers
            ? {
                discovery: { type: "EndpointSlice", kubeconfigFile: this.#direct(context), fallback: server },
              }
            : { backends: [server] }),
          tls: {
            caFile: this.#half("upstream-ca.crt", access.ca),
            // Discovered apiservers have different addresses, but all of their certificates contain this name.
            serverName: access.serverName ?? (discovers ? "kubernetes.default.svc" : undefined),
            ...(lent === undefined ? {} : { impersonator: lent }),
          },
        },
      ],
      drain: { shutdownDelay: "0s", timeout: "1s" },
      admin: { address: "127.0.0.1:0", metricsAddress: "127.0.0.1:0" },
      logging: { format: "Text" },
    };
  }

  /** Writes a kubeconfig with the proxy's address. Returns its path. */
  writeKubeconfig({ context, access, pair }: TryOptions, address: string): string {
    const { cluster: original, user, name, namespace } = context;
    const { extensions } = original;
    const cluster = {
      server: `https://${address}${access.path}`,
      "certificate-authority-data": base64(this.#authority.certificate),
      ...(extensions === undefined ? {} : { extensions }),
    };
    return this.#kubeconfig("kubeconfig", {
      name,
      namespace,
      cluster,
      user: pair === undefined ? user : { ...this.#ticket(), ...impersonationOf(user) },
    });
  }

  /** Returns a client certificate for this proxy. Its holder may act as the user while `try` runs. */
  #ticket(): Readonly<Record<string, string>> {
    const { certificate, key } = this.#authority.issue({
      name: "a client of watchkeeper try",
      usage: "client",
    });
    return { "client-certificate-data": base64(certificate), "client-key-data": base64(key) };
  }

  #direct(context: Context): string {
    return this.#kubeconfig("direct.kubeconfig", context);
  }

  #kubeconfig(file: string, { name, namespace, cluster, user }: Context): string {
    const context = { cluster: name, user: name, ...(namespace === undefined ? {} : { namespace }) };
    const kubeconfig = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name, cluster }],
      users: [{ name, user }],
      contexts: [{ name, context }],
      "current-context": name,
    };
    return this.#write(file, `${JSON.stringify(kubeconfig, undefined, 2)}\n`);
  }

  /** Writes a new certificate of the credential plugin. The proxy reloads it once both files are written. */
  renew({ certificate, key }: Pair): void {
    this.#write("user.key", key);
    this.#write("user.crt", certificate);
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  #half(name: string, half: FileOrText): string {
    return "file" in half ? half.file : this.#write(name, half.text);
  }

  #write(name: string, text: string): string {
    const path = join(this.directory, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
