/** Reads the clusters with static endpoints from an envoy.yaml, and notes each setting that is not imported. */
import { Failure } from "../../../base/failure.ts";
import { isProblems, lineOf, quote } from "../../config/problem.ts";
import { readYaml, type YamlDocument } from "../../config/yaml-document.ts";
import { refused } from "../commands/options.ts";
import { at, type Row, rowsAt } from "../commands/rows.ts";
import type { NamedBackend } from "../deploy/shape-config.ts";
import { type Group, type Note, nameOf, urlOf } from "./imported.ts";

const unneeded: Readonly<Record<string, string>> = {
  health_checks: "every apiserver gets PINGs and /readyz probes by default",
  outlier_detection: "an apiserver that fails is probed on a fresh connection",
  upstream_connection_options: "keepalive is on for every socket (health.tcpKeepalive)",
  lb_policy: "a new client uses the less loaded of two random apiservers",
  circuit_breakers: "built-in limits apply (src/base/limits.ts)",
};
const understood = new Set(["name", "type", "load_assignment", "connect_timeout"]);

export function groupsOfEnvoy(text: string, file: string): readonly Group[] | Failure {
  const document = readYaml(text, file);
  if (isProblems(document)) return refused(document.map((problem) => lineOf(problem)).join("\n"));
  const clusters = rowsAt(document.value, "static_resources.clusters");
  const groups: Group[] = [];
  for (const [index, cluster] of clusters.entries()) {
    const pointer = `/static_resources/clusters/${index}`;
    const backends = backendsOf(cluster, { document, pointer });
    if (backends instanceof Failure) return backends;
    if (backends.length === 0) continue;
    const named = at(cluster, "name");
    const name = typeof named === "string" ? named : `clusters[${index}]`;
    groups.push({ name, backends, ...addressOf(document), notes: notesOf(cluster, { document, pointer }) });
  }
  return groups;
}

type ClusterPlace = { readonly document: YamlDocument; readonly pointer: string };

function backendsOf(cluster: unknown, { document, pointer }: ClusterPlace): NamedBackend[] | Failure {
  if (at(cluster, "type") === "EDS")
    return refused(
      `${document.positionOf(`${pointer}/type`)}: an EDS cluster's endpoints are not in this file: use discovery`,
    );
  const backends: NamedBackend[] = [];
  for (const [group, endpoints] of rowsAt(cluster, "load_assignment.endpoints").entries()) {
    for (const [index, one] of rowsAt(endpoints, "lb_endpoints").entries()) {
      const address = at(one, "endpoint.address.socket_address");
      const [host, port] = [at(address, "address"), at(address, "port_value")];
      const url = urlOf(typeof host === "string" ? host : "", typeof port === "number" ? String(port) : "");
      const where = `${pointer}/load_assignment/endpoints/${group}/lb_endpoints/${index}`;
      if (url === undefined)
        return refused(`${document.positionOf(where)}: no socket_address with address and port_value`);
      backends.push({ name: nameOf(String(host)), url });
    }
  }
  return distinct(backends);
}

/** Adds a number to each repeated name. A backend is named after its host, so two ports of a host share one name. */
function distinct(backends: readonly NamedBackend[]): NamedBackend[] {
  const isTaken = (name: string, index: number): boolean =>
    backends.slice(0, index).some((one) => one.name === name);
  return backends.map((one, index) =>
    isTaken(one.name, index) ? { ...one, name: `${one.name}-${index + 1}` } : one,
  );
}

/**
 * Returns the first listener's address. It may be the wrong one: to find the right one, the import would have to
 * analyse all filter chains.
 */
function addressOf({ value }: YamlDocument): { address?: string } {
  const [first] = rowsAt(value, "static_resources.listeners");
  const address = at(first, "address.socket_address");
  const [host, port] = [at(address, "address"), at(address, "port_value")];
  if (typeof host !== "string" || typeof port !== "number") return {};
  return { address: `${host === "0.0.0.0" || host.includes(":") ? "" : host}:${port}` };
}

function notesOf(cluster: Row, { document, pointer }: ClusterPlace): Note[] {
  return Object.keys(cluster)
    .filter((key) => !understood.has(key))
    .map((key) => {
      const why = Object.hasOwn(unneeded, key) ? unneeded[key] : undefined;
      const text = why === undefined ? "was not imported" : `is not needed: ${why}`;
      return { at: document.keyPositionOf(`${pointer}/${key}`), text: `${quote(key)} ${text}` };
    });
}
