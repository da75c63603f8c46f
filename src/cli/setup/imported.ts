/** The settings that import-haproxy.ts and import-envoy.ts read, and the configuration that is generated from them. */
import { Failure } from "../../base/failure.ts";
import { quote } from "../../config/problem.ts";
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

const apiserverPort = ":6443";
const usualCa = "/etc/kubernetes/pki/ca.crt";

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
 * Returns a configuration that passes TLS through, as the load balancer does. With TLS passthrough, watchkeeper needs
 * no certificate and no key.
 */
export function configOf(
  { name, backends, address = ":8443", caFile = usualCa }: Group,
  file: string,
): string {
  return shapeConfig({
    about: [
      `Backends from ${quote(name)} in ${quote(file)}. The apiservers terminate TLS, as before: a client whose apiserver`,
      "fails is disconnected and connects again. With a certificate of its own (tls instead of mode) watchkeeper",
      "moves watches and requests, and no client notices: see the output of `watchkeeper config`.",
    ],
    name: "imported",
    address,
    backends,
    caFile,
    metricsAddress: "127.0.0.1:7481",
  });
}

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

export function refused(message: string): Failure {
  return new Failure("bad-file", "client", message);
}
