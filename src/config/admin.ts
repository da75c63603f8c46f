/** What a file says of the admin port → AdminConfig, and what no schema can say of it. Pure. */
import { type Address, isLoopback, parseAddress } from "../base/address.ts";
import { type Breach, quote } from "./problem.ts";
import { upstreamFor, type Written, type WrittenAdmin, writtenUpstreams } from "./schema.ts";
import { checked, type PairFiles, type PathOf, pairOf } from "./upstream.ts";

/** Paths are absolute. */
export type AdminConfig = {
  readonly address: Address;
  readonly metricsAddress: Address;
  /** Does the API change anything? */
  readonly operations: "on" | "off";
  /** Undefined: whoever reaches the API may use it. */
  readonly authorization: AuthorizationConfig | undefined;
  /** Of the API; undefined: plain HTTP. */
  readonly tls: PairFiles | undefined;
};

/** Who may use the API is the word of a cluster. */
export type AuthorizationConfig = {
  /** Its name. */
  readonly upstream: string;
  /** Undefined: the pod's service account asks. */
  readonly kubeconfigFile: string | undefined;
  /** None: the apiservers' own. */
  readonly audiences: readonly string[];
};

/** `only` is the name of the cluster where there is one; the rules have found all sound. */
export function adminOf(written: WrittenAdmin, only: string, pathOf: PathOf): AdminConfig {
  const { authorization, tls } = written;
  const { mode, upstream = only, kubeconfigFile, audiences } = authorization;
  return {
    address: checked(parseAddress(written.address)),
    metricsAddress: checked(parseAddress(written.metricsAddress)),
    operations: written.operations,
    authorization:
      mode === "off"
        ? undefined
        : { upstream, kubeconfigFile: kubeconfigFile && pathOf(kubeconfigFile), audiences },
    tls: tls && pairOf(tls, pathOf),
  };
}

/** Loopback is the fence of an API without a login; elsewhere a token must not cross the network readable. */
export function adminBreaches(written: Written): Breach[] {
  const { address, authorization, tls } = written.admin;
  const isGuarded = authorization.mode === "kubernetes";
  if (isLoopback(parseAddress(address)?.host ?? "") || (isGuarded && tls !== undefined))
    return authorizationBreaches(written);
  const missing = [
    ...(isGuarded ? [] : ['"authorization.mode" "kubernetes"']),
    ...(tls === undefined ? ['"tls"'] : []),
  ];
  const message = `is ${quote(address)}, but without ${missing.join(" and ")} only loopback may be listened on`;
  return [{ pointer: "/admin/address", message }, ...authorizationBreaches(written)];
}

/** Of whom it is asked, and how. */
function authorizationBreaches(written: Written): Breach[] {
  const { mode, upstream, kubeconfigFile, audiences } = written.admin.authorization;
  const pointer = "/admin/authorization";
  if (mode === "off") {
    const isIdle = upstream !== undefined || kubeconfigFile !== undefined || audiences.length > 0;
    const message = 'says whom to ask, but nobody is asked while "mode" is "off"';
    return isIdle ? [{ pointer, message }] : [];
  }
  const placed = upstreamFor(written, upstream);
  if (placed === undefined) return [{ pointer: `${pointer}/upstream`, message: whichOf(written, upstream) }];
  // A token is shown to nobody whose certificate was not seen.
  if (placed.upstream.tls !== undefined) return [];
  return [
    { pointer: `${placed.pointer}/tls`, message: 'is missing: "admin.authorization" asks this cluster' },
  ];
}

function whichOf(written: Written, upstream: string | undefined): string {
  if (upstream !== undefined) return `is ${quote(upstream)}, which no upstream is called`;
  const names = writtenUpstreams(written).map(({ upstream: { name } }) => quote(name));
  return `is missing: it must be one of ${names.join(", ")}`;
}
