/**
 * Reads a kubeconfig as kubectl does: if several files contain an entry, the first file's entry is used, and paths are
 * relative to the file that contains them. Keeps unknown fields, because entries are copied to a new kubeconfig.
 */
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { rootCertificates } from "node:tls";
import { isLoopback } from "../../../base/address.ts";
import { Failure } from "../../../base/failure.ts";
import { textAt } from "../../../base/json.ts";
import { limits } from "../../../base/limits.ts";
import { readText } from "../../../base/read-text.ts";
import { isProblems, lineOf, quote } from "../../config/problem.ts";
import { readYaml } from "../../config/yaml-document.ts";
import { refused } from "../commands/options.ts";
import { type Row, rowOf, rowsAt } from "../commands/rows.ts";

/** A context with its cluster and user. All file paths in the cluster and the user are absolute. */
export type Context = {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly cluster: Row;
  readonly user: Row;
};

/**
 * Returns the files that kubectl would read. --kubeconfig takes precedence over $KUBECONFIG. Without either of them,
 * the only file is ~/.kube/config.
 */
export function kubeconfigFiles(flag: string | undefined, env: NodeJS.ProcessEnv): readonly string[] {
  if (flag !== undefined) return [flag];
  const listed = (env["KUBECONFIG"] ?? "").split(delimiter).filter((file) => file !== "");
  return listed.length > 0 ? listed : [join(env["HOME"] ?? homedir(), ".kube", "config")];
}

/**
 * Returns the context with the name `wanted`; default: the current context. If several files are given, a missing file
 * is ignored.
 */
export function readContext(files: readonly string[], wanted: string | undefined): Context | Failure {
  const configs = readConfigs(files);
  if (configs instanceof Failure) return configs;
  const current = configs.map((config) => textAt(config, "current-context")).find((one) => one !== "") ?? "";
  const name = wanted ?? current;
  if (name === "")
    return refused(`There is no current context in ${files.join(", ")}: choose one with --context`);
  const context = entry(configs, { list: "contexts", name, field: "context" });
  if (context === undefined) return refused(`There is no context ${quote(name)} in ${files.join(", ")}`);
  const cluster = entry(configs, { list: "clusters", name: textAt(context, "cluster"), field: "cluster" });
  if (cluster === undefined) return refused(`Context ${quote(name)} has no existing cluster`);
  const user = entry(configs, { list: "users", name: textAt(context, "user"), field: "user" }) ?? {};
  return { name, namespace: textAt(context, "namespace") || undefined, cluster, user };
}

function readConfigs(files: readonly string[]): readonly Row[] | Failure {
  const configs: Row[] = [];
  for (const file of files) {
    const config = readConfig(file);
    if (!(config instanceof Failure)) configs.push(config);
    else if (files.length === 1 || !config.message.endsWith("does not exist")) return config;
  }
  return configs;
}

function readConfig(file: string): Row | Failure {
  const text = readText(file, limits.manifestBytes);
  if (text instanceof Failure) return refused(`${quote(file)} ${text.message}`);
  const document = readYaml(text, file);
  if (isProblems(document)) return refused(document.map(lineOf).join("\n"));
  const directory = dirname(resolve(file));
  const config = rowOf(document.value);
  return {
    ...config,
    clusters: inside(config["clusters"], "cluster", (cluster) =>
      withPaths(cluster, directory, ["certificate-authority"]),
    ),
    users: inside(config["users"], "user", (user) => userFrom(user, directory)),
  };
}

function userFrom(user: Row, directory: string): Row {
  const whole = withPaths(user, directory, ["client-certificate", "client-key", "tokenFile"]);
  const exec = rowOf(user["exec"]);
  const command = textAt(exec, "command");
  // A command without "/" is looked up in PATH. Any other path is relative to the kubeconfig (ResolveLocalPaths).
  if (!command.includes("/") || isAbsolute(command)) return whole;
  return { ...whole, exec: { ...exec, command: resolve(directory, command) } };
}

function withPaths(fields: Row, directory: string, names: readonly string[]): Row {
  const paths = names
    .filter((name) => textAt(fields, name) !== "")
    .map((name) => [name, resolve(directory, textAt(fields, name))] as const);
  return { ...fields, ...Object.fromEntries(paths) };
}

/** Returns the entries of a kubeconfig's list after applying `change` to the object in each entry's field `field`. */
function inside(list: unknown, field: string, change: (fields: Row) => Row): readonly Row[] {
  return (Array.isArray(list) ? list : []).map((item) => {
    const fields = rowOf(item);
    return { ...fields, [field]: change(rowOf(fields[field])) };
  });
}

function entry(
  configs: readonly Row[],
  { list, name, field }: { readonly list: string; readonly name: string; readonly field: string },
): Row | undefined {
  for (const config of configs) {
    const found = rowsAt(config, list).find((item) => item["name"] === name);
    if (found !== undefined) return rowOf(found[field]);
  }
  return undefined;
}

/** A certificate or key: an existing file, or PEM text that must still be written to a file. */
export type FileOrText = { readonly file: string } | { readonly text: string };

export type ClusterAccess = {
  /** The apiserver's address without a path, "https://host:port", as a configuration requires it. */
  readonly origin: string;
  /** The path after the address, such as "/k8s/clusters/c-1" on a server for many clusters; "": none. */
  readonly path: string;
  /** Value of tls-server-name; undefined: the certificate must contain the host of the server's address. */
  readonly serverName: string | undefined;
  readonly ca: FileOrText;
};

export function accessOf({ name, cluster }: Context): ClusterAccess | Failure {
  const url = urlOf(cluster);
  if (typeof url === "string") return refused(`Context ${quote(name)}: ${url}`);
  return {
    origin: url.origin,
    path: url.pathname.replace(/\/+$/, ""),
    serverName: textAt(cluster, "tls-server-name") || undefined,
    // Without a CA in the kubeconfig, the system's CAs apply, as in client-go.
    ca: fileOrText(cluster, "certificate-authority") ?? { text: rootCertificates.join("\n") },
  };
}

/** Returns the server's URL, or a text that says why it cannot be used. */
function urlOf(cluster: Row): URL | string {
  if (cluster["insecure-skip-tls-verify"] === true)
    return "insecure-skip-tls-verify is set: watchkeeper always verifies a server, give it a certificate-authority";
  if (textAt(cluster, "proxy-url") !== "") return "it uses a proxy-url, which watchkeeper does not support";
  const url = URL.parse(textAt(cluster, "server"));
  if (url === null || !["https:", "http:"].includes(url.protocol) || url.username !== "" || url.search !== "")
    return `its server ${quote(cluster["server"] ?? "")} is not an https URL`;
  const isHere = isLoopback(url.hostname.replace(/^\[(.*)\]$/, "$1"));
  return url.protocol === "https:" || isHere ? url : "its server uses http and is not on this machine";
}

export type UserPair = { readonly certificate: FileOrText; readonly key: FileOrText };

export function pairOf(user: Row): UserPair | undefined {
  const certificate = fileOrText(user, "client-certificate");
  const key = fileOrText(user, "client-key");
  return certificate === undefined || key === undefined ? undefined : { certificate, key };
}

/**
 * Returns a field's data or, without data, the file that the field names. If both are given, the data is used, as in
 * client-go.
 */
function fileOrText(fields: Row, name: string): FileOrText | undefined {
  const data = textAt(fields, `${name}-data`);
  if (data !== "") return { text: Buffer.from(data, "base64").toString() };
  const file = textAt(fields, name);
  return file === "" ? undefined : { file };
}

/**
 * Returns the user's impersonation settings. They stay in the client's kubeconfig, because the client sends the
 * impersonation headers itself, even if the proxy presents the user's certificate.
 */
export function impersonationOf(user: Row): Readonly<Record<string, unknown>> {
  const names = ["as", "as-uid", "as-groups", "as-user-extra"];
  return Object.fromEntries(names.flatMap((name) => (user[name] === undefined ? [] : [[name, user[name]]])));
}

/** Names the kind of a user's credentials, without their values. */
export function kindOf(user: Row): string {
  if (pairOf(user) !== undefined) return "a client certificate";
  if (user["exec"] !== undefined) return `a bearer token from ${quote(rowOf(user["exec"])["command"])}`;
  if (user["token"] !== undefined || user["tokenFile"] !== undefined) return "a bearer token";
  return Object.keys(user).length === 0 ? "anonymous: no credentials" : "credentials of the kubeconfig's own";
}
