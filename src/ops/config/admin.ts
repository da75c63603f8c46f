/** Converts and checks the `admin` section of the configuration file. No I/O. */
import type { Written } from "../../../config/schema/written.ts";
import { type Address, isLoopback, parseAddress, textOf } from "../../base/address.ts";
import { checked, type PairFiles, type PathOf, pairOf } from "./cluster.ts";
import { type Breach, quote } from "./problem.ts";
import { type ReplicasConfig, replicasOf } from "./replicas.ts";
import { clusterFor, referenceBreach } from "./schema.ts";

type WrittenAccess = Written["admin"]["metrics"];

export type AdminConfig = {
  readonly address: Address;
  readonly metricsAddress: Address;
  /** True if a thread that serves no clients answers metrics and probes. */
  readonly probeThread: boolean;
  readonly readOnly: boolean;
  /** How to find the other watchkeeper processes; undefined: this process knows no other process. */
  readonly replicas: ReplicasConfig | undefined;
  /** Which clients may use `metricsAddress`. For `address`, AdminConfig itself has the same fields. */
  readonly metrics: AccessConfig;
} & AccessConfig;

/** Which clients may use one of the two admin ports, and the port's certificate. */
export type AccessConfig = {
  /** How clients are authorized; undefined: every client that can connect may use the port. */
  readonly authorization: AuthorizationConfig | undefined;
  /** The certificate and key files; undefined: plain HTTP. */
  readonly tls: PairFiles | undefined;
};

export type AuthorizationConfig = {
  /** Name of the cluster that decides which clients may use the API. */
  readonly cluster: string;
  /** The kubeconfig for requests that review clients' tokens; undefined: the pod's service account. */
  readonly kubeconfigFile: string | undefined;
  /** The audiences that a token must have; empty: the apiservers' own audiences. */
  readonly audiences: readonly string[];
};

/**
 * Converts the section, which the rules have accepted. `only`: name of the cluster that is used if the section names
 * none.
 */
export function adminOf(written: Written["admin"], only: string, pathOf: PathOf): AdminConfig {
  return {
    address: checked(parseAddress(written.address)),
    metricsAddress: checked(parseAddress(written.metricsAddress)),
    probeThread: written.probeThread,
    readOnly: written.readOnly,
    replicas: written.replicas && replicasOf(written.replicas, pathOf),
    metrics: accessOf(written.metrics, only, pathOf),
    ...accessOf(written, only, pathOf),
  };
}

function accessOf({ authorization, tls }: WrittenAccess, only: string, pathOf: PathOf): AccessConfig {
  const { mode, cluster = only, kubeconfigFile, audiences } = authorization;
  return {
    authorization:
      mode === "AlwaysAllow"
        ? undefined
        : { cluster, kubeconfigFile: kubeconfigFile && pathOf(kubeconfigFile), audiences },
    tls: tls && pairOf(tls, pathOf),
  };
}

/**
 * Finds an admin API that other machines can use without authorization, or to which clients would send tokens in clear
 * text.
 */
export function adminBreaches(written: Written): Breach[] {
  const { address, authorization, tls, metrics } = written.admin;
  const isGuarded = authorization.mode === "Webhook";
  const others = [
    ...authorizationBreaches(written, authorization, "/admin/authorization"),
    ...metricsBreaches(metrics),
    ...authorizationBreaches(written, metrics.authorization, "/admin/metrics/authorization"),
  ];
  if (isLoopback(parseAddress(address)?.host ?? "") || (isGuarded && tls !== undefined)) return others;
  const missing = [
    ...(isGuarded ? [] : ['"authorization.mode" "Webhook"']),
    ...(tls === undefined ? ['"tls"'] : []),
  ];
  const message = `is ${quote(address)}, but without ${missing.join(" and ")} only loopback may be listened on`;
  return [{ pointer: "/admin/address", message }, ...others];
}

/**
 * Finds a metrics port to which clients would send tokens in clear text. Plain HTTP without tokens is allowed, because
 * metrics contain no secrets.
 */
function metricsBreaches({ authorization, tls }: WrittenAccess): Breach[] {
  if (authorization.mode === "AlwaysAllow" || tls !== undefined) return [];
  const message =
    'is "Webhook", but without "admin.metrics.tls" clients would send their tokens in clear text';
  return [{ pointer: "/admin/metrics/authorization/mode", message }];
}

/** Returns the warning about metrics for which `hasUnprotectedMetrics` is true. */
export function unprotectedMetrics({ metricsAddress }: AdminConfig): string {
  return `${textOf(metricsAddress)} serves metrics to other machines without "admin.metrics.tls" and "admin.metrics.authorization"; a firewall or NetworkPolicy must restrict it`;
}

/** True if other machines can read the metrics without a token or in clear text. */
export function hasUnprotectedMetrics({ metricsAddress, metrics }: AdminConfig): boolean {
  const isSecure = metrics.tls !== undefined && metrics.authorization !== undefined;
  return !isSecure && !isLoopback(metricsAddress.host);
}

/**
 * Finds an authorization whose cluster does not exist, or has no TLS, so that the proxy would send it tokens in clear
 * text. Also finds settings without effect.
 */
function authorizationBreaches(
  written: Written,
  { mode, cluster, kubeconfigFile, audiences }: WrittenAccess["authorization"],
  pointer: string,
): Breach[] {
  if (mode === "AlwaysAllow") {
    const isIdle = cluster !== undefined || kubeconfigFile !== undefined || audiences.length > 0;
    const message = 'has settings of mode "Webhook", but "mode" is "AlwaysAllow"';
    return isIdle ? [{ pointer, message }] : [];
  }
  const placed = clusterFor(written, cluster);
  if (placed === undefined) return referenceBreach({ pointer, cluster }, written);
  if (placed.cluster.tls !== undefined) return [];
  const name = pointer.slice(1).replaceAll("/", ".");
  return [{ pointer: `${placed.pointer}/tls`, message: `is missing: "${name}" asks this cluster` }];
}
