/** Converts and checks the `admin` section of the configuration file. Pure. */
import { type Address, isLoopback, parseAddress } from "../base/address.ts";
import { checked, type PairFiles, type PathOf, pairOf } from "./cluster.ts";
import { type Breach, quote } from "./problem.ts";
import { clusterFor, referenceBreach, type Written, type WrittenAdmin } from "./schema.ts";

export type AdminConfig = {
  readonly address: Address;
  readonly metricsAddress: Address;
  /** True if a thread of its own answers metrics and probes. */
  readonly probeThread: boolean;
  readonly readOnly: boolean;
  /** How clients are authorized; undefined: every client that can connect may use the API. */
  readonly authorization: AuthorizationConfig | undefined;
  /** The certificate and key files of the admin API; undefined: plain HTTP. */
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

/** Converts a section that the rules have accepted. `only`: the first cluster's name, which is the default. */
export function adminOf(written: WrittenAdmin, only: string, pathOf: PathOf): AdminConfig {
  const { authorization, tls } = written;
  const { mode, cluster = only, kubeconfigFile, audiences } = authorization;
  return {
    address: checked(parseAddress(written.address)),
    metricsAddress: checked(parseAddress(written.metricsAddress)),
    probeThread: written.probeThread,
    readOnly: written.readOnly,
    authorization:
      mode === "AlwaysAllow"
        ? undefined
        : { cluster, kubeconfigFile: kubeconfigFile && pathOf(kubeconfigFile), audiences },
    tls: tls && pairOf(tls, pathOf),
  };
}

/** Finds an admin API that other machines can use without authorization, or that would get tokens in clear text. */
export function adminBreaches(written: Written): Breach[] {
  const { address, authorization, tls } = written.admin;
  const isGuarded = authorization.mode === "Webhook";
  if (isLoopback(parseAddress(address)?.host ?? "") || (isGuarded && tls !== undefined))
    return authorizationBreaches(written);
  const missing = [
    ...(isGuarded ? [] : ['"authorization.mode" "Webhook"']),
    ...(tls === undefined ? ['"tls"'] : []),
  ];
  const message = `is ${quote(address)}, but without ${missing.join(" and ")} only loopback may be listened on`;
  return [{ pointer: "/admin/address", message }, ...authorizationBreaches(written)];
}

/** Finds a cluster for authorization that does not exist, or that would get tokens without TLS. */
function authorizationBreaches(written: Written): Breach[] {
  const { mode, cluster, kubeconfigFile, audiences } = written.admin.authorization;
  const pointer = "/admin/authorization";
  if (mode === "AlwaysAllow") {
    const isIdle = cluster !== undefined || kubeconfigFile !== undefined || audiences.length > 0;
    const message = 'has settings of mode "Webhook", but "mode" is "AlwaysAllow"';
    return isIdle ? [{ pointer, message }] : [];
  }
  const placed = clusterFor(written, cluster);
  if (placed === undefined) return referenceBreach({ pointer, cluster }, written);
  if (placed.cluster.tls !== undefined) return [];
  return [
    { pointer: `${placed.pointer}/tls`, message: 'is missing: "admin.authorization" asks this cluster' },
  ];
}
