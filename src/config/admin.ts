/** Converts the file's admin section to AdminConfig, with the rules that a schema cannot express. Pure. */
import { type Address, isLoopback, parseAddress } from "../base/address.ts";
import { checked, type PairFiles, type PathOf, pairOf } from "./cluster.ts";
import { type Breach, quote } from "./problem.ts";
import { clusterFor, referenceBreach, type Written, type WrittenAdmin } from "./schema.ts";

/** Paths are absolute. */
export type AdminConfig = {
  readonly address: Address;
  readonly metricsAddress: Address;
  readonly readOnly: boolean;
  /** Undefined: every client that can connect may use the API. */
  readonly authorization: AuthorizationConfig | undefined;
  /** Key pair of the API; undefined: plain HTTP. */
  readonly tls: PairFiles | undefined;
};

/** The cluster that decides which clients may use the API. */
export type AuthorizationConfig = {
  /** The cluster's name. */
  readonly cluster: string;
  /** Undefined: the pod's service account is used. */
  readonly kubeconfigFile: string | undefined;
  /** Empty: the apiservers' own audience. */
  readonly audiences: readonly string[];
};

/** `only` is the name of the single cluster, if there is one. The rules have accepted everything. */
export function adminOf(written: WrittenAdmin, only: string, pathOf: PathOf): AdminConfig {
  const { authorization, tls } = written;
  const { mode, cluster = only, kubeconfigFile, audiences } = authorization;
  return {
    address: checked(parseAddress(written.address)),
    metricsAddress: checked(parseAddress(written.metricsAddress)),
    readOnly: written.readOnly,
    authorization:
      mode === "AlwaysAllow"
        ? undefined
        : { cluster, kubeconfigFile: kubeconfigFile && pathOf(kubeconfigFile), audiences },
    tls: tls && pairOf(tls, pathOf),
  };
}

/**
 * Without authorization only this machine may reach the API; without TLS a token would cross the network in clear text.
 */
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

/** The cluster must exist and have TLS, because the token is sent to it. */
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
