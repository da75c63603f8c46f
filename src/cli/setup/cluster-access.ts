/** From a context to what a proxy needs of it: whom to dial and whom to trust, and what is left to the client. Pure. */
import { rootCertificates } from "node:tls";
import { isLoopback } from "../../base/address.ts";
import { Failure } from "../../base/failure.ts";
import { quote } from "../../config/problem.ts";
import { type Context, fieldsOf, textOf } from "./kubeconfig.ts";

export type ClusterAccess = {
  /** "https://host:port", which a configuration can hold. */
  readonly origin: string;
  /** "/k8s/clusters/c-1": some servers have many clusters, each below a path of its own. */
  readonly path: string;
  /** What the kubeconfig would have in the certificate; undefined: the server's host. */
  readonly serverName: string | undefined;
  /** A file that is there, or PEM text that needs one. */
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

/** The server's, or why there is none for us. */
function urlOf(cluster: Context["cluster"]): URL | string {
  if (cluster["insecure-skip-tls-verify"] === true)
    return "insecure-skip-tls-verify is set: watchkeeper trusts nobody unseen, give it a certificate-authority";
  if (textOf(cluster["proxy-url"]) !== "") return "it goes through a proxy-url, which watchkeeper does not";
  const url = URL.parse(textOf(cluster["server"]));
  if (url === null || !["https:", "http:"].includes(url.protocol) || url.username !== "" || url.search !== "")
    return `its server ${quote(cluster["server"] ?? "")} is no https URL`;
  const isHere = isLoopback(url.hostname.replace(/^\[(.*)\]$/, "$1"));
  return url.protocol === "https:" || isHere ? url : "its server is http, and not on this machine";
}

/** As client-go has it: data before file; with neither, whom the machine trusts. */
function caOf(cluster: Context["cluster"]): ClusterAccess["ca"] {
  const data = textOf(cluster["certificate-authority-data"]);
  if (data !== "") return { text: Buffer.from(data, "base64").toString() };
  const file = textOf(cluster["certificate-authority"]);
  return file === "" ? { text: rootCertificates.join("\n") } : { file };
}

/** A pair as the kubeconfig has it, each half in a file or as text. */
export type UserPair = { readonly certificate: Half; readonly key: Half };
type Half = { readonly file: string } | { readonly text: string };

/** Undefined: this user shows no certificate. */
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

/** What the client goes on doing by itself when we show the certificate for it. */
export function impersonationOf(user: Context["user"]): Readonly<Record<string, unknown>> {
  const names = ["as", "as-uid", "as-groups", "as-user-extra"];
  return Object.fromEntries(names.flatMap((name) => (user[name] === undefined ? [] : [[name, user[name]]])));
}

/** In words, without any of it. */
export function kindOf(user: Context["user"]): string {
  if (pairOf(user) !== undefined) return "a client certificate";
  if (user["exec"] !== undefined) return `a bearer token from ${quote(fieldsOf(user["exec"])["command"])}`;
  if (user["token"] !== undefined || user["tokenFile"] !== undefined) return "a bearer token";
  return Object.keys(user).length === 0 ? "nobody: no credentials" : "credentials of the kubeconfig's own";
}
