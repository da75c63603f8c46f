/** Derives from a kubeconfig context the address and CA of its cluster, and what stays with the client. Pure. */
import { rootCertificates } from "node:tls";
import { isLoopback } from "../../base/address.ts";
import { Failure } from "../../base/failure.ts";
import { quote } from "../../config/problem.ts";
import { type Context, fieldsOf, textOf } from "./kubeconfig.ts";

export type ClusterAccess = {
  /** "https://host:port": what a configuration accepts. */
  readonly origin: string;
  /** "/k8s/clusters/c-1": some servers serve many clusters, each below a path of its own. */
  readonly path: string;
  /** The kubeconfig's tls-server-name; undefined: the server's host. */
  readonly serverName: string | undefined;
  /** An existing file, or PEM text that has to be written to one. */
  readonly ca: { readonly file: string } | { readonly text: string };
};

export function accessOf({ name, cluster }: Context): ClusterAccess | Failure {
  const url = urlOf(cluster);
  if (typeof url === "string") return new Failure("bad-file", "client", `Context ${quote(name)}: ${url}`);
  return {
    origin: url.origin,
    path: url.pathname.replace(/\/+$/, ""),
    serverName: textOf(cluster["tls-server-name"]) || undefined,
    ca: caOf(cluster),
  };
}

/** Returns the server's URL, or why it cannot be used. */
function urlOf(cluster: Context["cluster"]): URL | string {
  if (cluster["insecure-skip-tls-verify"] === true)
    return "insecure-skip-tls-verify is set: watchkeeper always verifies a server, give it a certificate-authority";
  if (textOf(cluster["proxy-url"]) !== "") return "it uses a proxy-url, which watchkeeper does not support";
  const url = URL.parse(textOf(cluster["server"]));
  if (url === null || !["https:", "http:"].includes(url.protocol) || url.username !== "" || url.search !== "")
    return `its server ${quote(cluster["server"] ?? "")} is not an https URL`;
  const isHere = isLoopback(url.hostname.replace(/^\[(.*)\]$/, "$1"));
  return url.protocol === "https:" || isHere ? url : "its server uses http and is not on this machine";
}

/** As in client-go: data takes precedence over a file; with neither, the system's CAs apply. */
function caOf(cluster: Context["cluster"]): ClusterAccess["ca"] {
  const data = textOf(cluster["certificate-authority-data"]);
  if (data !== "") return { text: Buffer.from(data, "base64").toString() };
  const file = textOf(cluster["certificate-authority"]);
  return file === "" ? { text: rootCertificates.join("\n") } : { file };
}

/** A certificate and key from a kubeconfig, each as a file or as text. */
export type UserPair = { readonly certificate: Half; readonly key: Half };
type Half = { readonly file: string } | { readonly text: string };

/** Returns undefined if this user has no client certificate. */
export function pairOf(user: Context["user"]): UserPair | undefined {
  const certificate = halfOf(user, "client-certificate");
  const key = halfOf(user, "client-key");
  return certificate === undefined || key === undefined ? undefined : { certificate, key };
}

function halfOf(user: Context["user"], name: string): Half | undefined {
  const data = textOf(user[`${name}-data`]);
  if (data !== "") return { text: Buffer.from(data, "base64").toString() };
  const file = textOf(user[name]);
  return file === "" ? undefined : { file };
}

/** Returns the impersonation settings, which the client keeps when the proxy presents the certificate. */
export function impersonationOf(user: Context["user"]): Readonly<Record<string, unknown>> {
  const names = ["as", "as-uid", "as-groups", "as-user-extra"];
  return Object.fromEntries(names.flatMap((name) => (user[name] === undefined ? [] : [[name, user[name]]])));
}

/** Describes the credentials, without their values. */
export function kindOf(user: Context["user"]): string {
  if (pairOf(user) !== undefined) return "a client certificate";
  if (user["exec"] !== undefined) return `a bearer token from ${quote(fieldsOf(user["exec"])["command"])}`;
  if (user["token"] !== undefined || user["tokenFile"] !== undefined) return "a bearer token";
  return Object.keys(user).length === 0 ? "anonymous: no credentials" : "credentials of the kubeconfig's own";
}
