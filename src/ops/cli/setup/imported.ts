/** The settings that import-haproxy.ts and import-envoy.ts read, and the configuration that is generated from them. */
import type { Failure } from "../../../base/failure.ts";
import { quote } from "../../config/problem.ts";
import { refused } from "../commands/options.ts";
import { type NamedBackend, shapeConfig } from "../deploy/shape-config.ts";

/** A note about a setting that is not imported. `at`: the setting's place in the file. `text`: the reason. */
export type Note = { readonly at: string; readonly text: string };

export type Group = {
  readonly name: string;
  readonly backends: readonly NamedBackend[];
  /** The load balancer's address, to which clients connect, such as ":8443"; default: the file has none. */
  readonly address?: string;
  readonly caFile?: string;
  readonly notes: readonly Note[];
};

/** The key `mode` of the listener in the generated configuration. */
export type Mode = "HTTP" | "Passthrough";

/**
 * A file that the generated configuration names by a guess. `keys`: where it is named. `what`: which file it must be.
 */
export type GuessedFile = { readonly keys: string; readonly what: string };

const apiserverPort = ":6443";
const pki = "/etc/kubernetes/pki";

/**
 * Returns the group with this name. Without a name, returns the only group or, if there are several, the only group
 * whose backends all have port 6443. Otherwise returns a Failure.
 */
export function chosenOf(groups: readonly Group[], name: string | undefined): Group | Failure {
  const wanted = name === undefined ? groups : groups.filter((group) => group.name === name);
  const likely = wanted.filter(({ backends }) => backends.every(({ url }) => url.endsWith(apiserverPort)));
  const [only, ...others] = wanted.length === 1 ? wanted : likely;
  if (only !== undefined && others.length === 0) return only;
  const names = groups.map((group) => quote(group.name)).join(", ");
  if (groups.length === 0) return refused("it has no servers");
  return refused(
    name === undefined ? `it has ${names}: choose one with --from` : `it has no ${quote(name)}, but ${names}`,
  );
}

/**
 * Returns the configuration. Where it must name a file that is not known (`guessedFiles`), it names kubeadm's file.
 * With mode HTTP, watchkeeper terminates TLS and accepts client certificates. With mode Passthrough, the apiservers
 * terminate TLS, so watchkeeper needs no certificate and no key.
 */
export function configOf(group: Group, file: string, mode: Mode): string {
  const { name, backends, address = ":8443", caFile = `${pki}/ca.crt` } = group;
  const guessed = guessedFiles(group, mode);
  return shapeConfig({
    about: [
      `Backends from ${quote(name)} in ${quote(file)}.`,
      ...aboutMode[mode],
      ...(guessed.length === 0 ? [] : [guessHead]),
      ...guessed.map(({ keys, what }) => `- ${keys}: ${what}`),
    ],
    name: "imported",
    address,
    backends,
    caFile,
    metricsAddress: "127.0.0.1:7481",
    ...(mode === "HTTP" ? kubeadmFiles : {}),
  });
}

const guessHead =
  "Set the following files. Their paths are a guess: those on a control-plane node of kubeadm.";

const aboutMode: Readonly<Record<Mode, readonly string[]>> = {
  HTTP: [
    "watchkeeper terminates TLS: if an apiserver fails, watchkeeper moves its watches and requests to another one.",
    "If all clients have bearer tokens, remove clientCAFile, identity and frontProxy. Remove them also on a machine that",
    "is not a control-plane node, because the key of frontProxy must stay on control-plane nodes. watchkeeper then refuses",
    "requests with a client certificate.",
  ],
  Passthrough: [
    "The apiservers terminate TLS, as before: if an apiserver fails, its clients are disconnected and connect again.",
    "`watchkeeper import --mode HTTP` prints a configuration with which watchkeeper terminates TLS. Then watchkeeper",
    "moves watches and requests to another apiserver, and no client notices the failure.",
  ],
};

const kubeadmFiles = {
  serving: {
    certFile: `${pki}/apiserver.crt`,
    keyFile: `${pki}/apiserver.key`,
    clientCAFile: `${pki}/ca.crt`,
  },
  frontProxy: { certFile: `${pki}/front-proxy-client.crt`, keyFile: `${pki}/front-proxy-client.key` },
} as const;

/** Returns the files that the operator must set. */
export function guessedFiles({ caFile }: Group, mode: Mode): readonly GuessedFile[] {
  const ca = { keys: "clusters[0].tls.caFile", what: "the CA of the apiservers' certificates" };
  const guessed = caFile === undefined ? [ca] : [];
  return mode === "HTTP" ? [...filesForTls, ...guessed] : guessed;
}

const filesForTls: readonly GuessedFile[] = [
  {
    keys: "listeners[0].tls.certFile and keyFile",
    what: "a certificate with the names and addresses to which clients connect, and its key",
  },
  { keys: "listeners[0].tls.clientCAFile", what: "the CA of the clients' certificates" },
  {
    keys: "clusters[0].tls.frontProxy.certFile and keyFile",
    what: "a client certificate from the CA in the apiservers' --requestheader-client-ca-file, and its key",
  },
];

/** Returns a valid backend name, in which the characters that watchkeeper does not allow are replaced. */
export function nameOf(text: string): string {
  const name = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "");
  return name.slice(0, 63) || "backend";
}

/** Returns a URL such as "https://10.0.0.11:6443"; undefined: the host or the port is invalid. */
export function urlOf(host: string, port: string): string | undefined {
  const bracketed = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  const url = `https://${bracketed}:${port}`;
  return /^\d{1,5}$/.test(port) && host !== "" && URL.canParse(url) ? url : undefined;
}
