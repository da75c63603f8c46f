/** Converts one entry of `clusters` to ClusterConfig, after the schema and the rules have accepted it. */
import assert from "node:assert/strict";
import type { WrittenBackend, WrittenCluster } from "../../../config/schema/written.ts";
import { type BackendAddress, parseBackendUrl } from "../../base/address.ts";
import { parseDuration } from "../../base/duration.ts";
import { type LimitConfig, limitOf } from "./limit.ts";

type WrittenTls = NonNullable<WrittenCluster["tls"]>;

/** A cluster's configuration with absolute paths, durations in milliseconds, and defaults. */
export type ClusterConfig = {
  readonly name: string;
  /** The configured backends. Discovery never removes them. */
  readonly backends: readonly BackendConfig[];
  readonly discovery: DiscoveryConfig | undefined;
  /** The TLS settings for all backends; undefined only if every backend is plain http on loopback. */
  readonly tls: UpstreamTls | undefined;
  readonly connectionPool: WrittenCluster["connectionPool"];
  readonly avoidUnreachableAPIs: boolean;
  readonly proxyProtocol: "V1" | "V2" | undefined;
  readonly limits: readonly LimitConfig[];
  readonly shield: ShieldConfig;
  /** The path in the URLs of all backends, below which the apiservers are served; "": at the root. */
  readonly pathPrefix: string;
};

export type ShieldConfig = {
  readonly isEnabled: boolean;
  readonly queueMs: number;
  readonly exemptGroups: readonly string[];
};

export type UpstreamTls = {
  readonly caFile: string;
  readonly reloadIntervalMs: number;
  readonly serverName: string | undefined;
  /**
   * The certificate with which the proxy authenticates itself when it asserts a client's identity in X-Remote-* fields.
   * The proxy has read this identity from the client's certificate.
   */
  readonly frontProxy: FrontProxy | undefined;
  /**
   * The certificate with which the proxy authenticates itself when it asserts a client's identity in Impersonate-*
   * fields. The proxy has read this identity from the client's certificate.
   */
  readonly impersonator: PairFiles | undefined;
};

export type PairFiles = {
  readonly certFile: string;
  readonly keyFile: string;
  readonly reloadIntervalMs: number;
};

export type FrontProxy = PairFiles & { readonly names: HeaderNames };

/** The apiservers' --requestheader-* header names in lower case. The proxy sends the first name of each list. */
export type HeaderNames = {
  readonly user: readonly string[];
  readonly uid: readonly string[];
  readonly group: readonly string[];
  readonly extraPrefixes: readonly string[];
};

export type DiscoveryConfig = {
  readonly intervalMs: number;
  /** A backend that is used only while no other backend is ready. */
  readonly fallback?: BackendConfig;
} & (
  | { readonly type: "DNS"; readonly hostname: string; readonly port: number }
  | { readonly type: "File"; readonly file: string }
  /** The kubeconfig for requests to the Kubernetes API; undefined: the pod's service account. */
  | { readonly type: "EndpointSlice" | "Lease"; readonly kubeconfigFile: string | undefined }
);

export type BackendConfig = {
  readonly name: string;
  readonly url: string;
  /** Share of the load, relative to the weights of the other backends; default: 1. */
  readonly weight?: number;
  /** The backend's zone; undefined: unknown. */
  readonly zone?: string;
} & BackendAddress;

/** True if the text is a valid name of a zone. The schema has the same rule. */
export function isZone(text: string): boolean {
  return /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(text);
}

export type PathOf = (path: string) => string;

export function clusterOf(written: WrittenCluster, pathOf: PathOf): ClusterConfig {
  const {
    name,
    backends = [],
    discovery,
    tls,
    connectionPool,
    avoidUnreachableAPIs,
    proxyProtocol,
    limits = [],
    shield,
  } = written;
  return {
    name,
    backends: backends.map(backendOf),
    discovery: discovery && discoveryOf(discovery, pathOf),
    tls: tls && upstreamTlsOf(tls, pathOf),
    connectionPool: { ...connectionPool },
    avoidUnreachableAPIs,
    proxyProtocol: proxyProtocol?.version,
    pathPrefix: parseBackendUrl(backends[0]?.url ?? "")?.path ?? "",
    limits: limits.map((limit) => limitOf(limit)),
    shield: {
      isEnabled: shield.enabled,
      queueMs: checked(parseDuration(shield.queueTimeout)),
      exemptGroups: shield.exemptGroups,
    },
  };
}

export function pairOf(
  { certFile, keyFile, reloadInterval }: NonNullable<WrittenTls["impersonator"]>,
  pathOf: PathOf,
): PairFiles {
  return {
    certFile: pathOf(certFile),
    keyFile: pathOf(keyFile),
    reloadIntervalMs: checked(parseDuration(reloadInterval)),
  };
}

function upstreamTlsOf(written: WrittenTls, pathOf: PathOf): UpstreamTls {
  const { caFile, reloadInterval, serverName, frontProxy, impersonator } = written;
  return {
    caFile: pathOf(caFile),
    reloadIntervalMs: checked(parseDuration(reloadInterval)),
    serverName,
    frontProxy: frontProxy && { ...pairOf(frontProxy, pathOf), names: namesOf(frontProxy) },
    impersonator: impersonator && pairOf(impersonator, pathOf),
  };
}

function namesOf(written: NonNullable<WrittenTls["frontProxy"]>): HeaderNames {
  return {
    user: lower(written.usernameHeaders),
    uid: lower(written.uidHeaders),
    group: lower(written.groupHeaders),
    extraPrefixes: lower(written.extraHeaderPrefixes),
  };
}

export function lower(names: readonly string[]): string[] {
  return names.map((name) => name.toLowerCase());
}

function backendOf({ name, url, weight, zone }: WrittenBackend): BackendConfig {
  const traits = { ...(weight === 1 ? {} : { weight }), ...(zone === undefined ? {} : { zone }) };
  return { name, url, ...checked(parseBackendUrl(url)), ...traits };
}

function discoveryOf(written: NonNullable<WrittenCluster["discovery"]>, pathOf: PathOf): DiscoveryConfig {
  const { type, hostname, port = 6443, file, kubeconfigFile } = written;
  const all = {
    intervalMs: checked(parseDuration(written.interval)),
    ...(written.fallback === undefined ? {} : { fallback: backendOf(written.fallback) }),
  };
  if (type === "DNS") return { type, ...all, hostname: checked(hostname), port };
  if (type === "File") return { type, ...all, file: pathOf(checked(file)) };
  return { type, ...all, kubeconfigFile: kubeconfigFile && pathOf(kubeconfigFile) };
}

export function checked<T>(value: T | undefined): T {
  assert(value !== undefined, "The schema accepted a text that cannot be parsed");
  return value;
}
