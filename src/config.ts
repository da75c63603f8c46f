/**
 * A configuration file → Config, or all its problems at once. Nothing here decides what to do about a bad file:
 * whoever holds the last good Config keeps it.
 */
import assert from "node:assert/strict";
import { dirname, resolve } from "node:path";
import { type Address, type BackendAddress, parseAddress, parseBackendUrl } from "./address.ts";
import type { Clock } from "./clock.ts";
import { checkRules } from "./config-rules.ts";
import {
  checkSchema,
  type ProxyProtocolConfig,
  type Written,
  type WrittenDiscovery,
  type WrittenHost,
  type WrittenListener,
  type WrittenPair,
  type WrittenUpstreamTls,
} from "./config-schema.ts";
import { parseDuration } from "./duration.ts";
import { Failure } from "./failure.ts";
import { limits } from "./limits.ts";
import { inReadingOrder, isProblems, type Problem } from "./problem.ts";
import { readText } from "./read-text.ts";
import { watchFiles } from "./watch-files.ts";
import { fieldOf, readYaml } from "./yaml-document.ts";

/** What an operator decides. Paths are absolute, durations milliseconds, nothing is left out. */
export type Config = {
  readonly file: string;
  /** The file's own shape, with its defaults. */
  readonly written: Written;
  readonly name: string;
  readonly listeners: readonly ListenerConfig[];
  readonly upstream: {
    /** Those that stay whatever is discovered. */
    readonly backends: readonly BackendConfig[];
    readonly discovery: DiscoveryConfig | undefined;
    /** Undefined only when every backend is plain http on loopback. */
    readonly tls: UpstreamTls | undefined;
    readonly lanes: { readonly streams: number; readonly warm: number };
    readonly sharing: "lanes" | "none";
    /** The PROXY header that every connection to a backend begins with; undefined: none. */
    readonly proxyProtocol: "v1" | "v2" | undefined;
  };
  readonly watches: {
    readonly bookmarks: "always" | "as-asked";
    readonly timeTravelGuard: "observe" | "enforce" | "off";
  };
  readonly health: {
    readonly ping: {
      readonly intervalMs: number;
      readonly suspectAfterMs: number;
      readonly deadAfterMs: number;
    };
    readonly probe: { readonly path: string; readonly intervalMs: number; readonly timeoutMs: number };
    readonly keepalive: { readonly idleMs: number; readonly intervalMs: number; readonly count: number };
  };
  readonly drain: { readonly readyDelayMs: number; readonly timeoutMs: number };
  readonly admin: {
    readonly address: Address;
    readonly metricsAddress: Address;
    /** Does the API change anything? */
    readonly operations: "on" | "off";
  };
  readonly logging: {
    readonly format: "json" | "text";
    readonly accessLog: "off" | "errors" | "longrunning" | "all";
  };
};

export type UpstreamTls = {
  readonly caFile: string;
  readonly reloadIntervalMs: number;
  readonly serverName: string | undefined;
  /** With what we vouch for clients that showed a certificate. */
  readonly frontProxy: FrontProxy | undefined;
  readonly impersonator: PairFiles | undefined;
};

export type PairFiles = {
  readonly certFile: string;
  readonly keyFile: string;
  readonly reloadIntervalMs: number;
};

export type FrontProxy = PairFiles & { readonly names: HeaderNames };

/** In lower case: the names that the apiserver was told to look for (--requestheader-*); the first of each is sent. */
export type HeaderNames = {
  readonly user: readonly string[];
  readonly uid: readonly string[];
  readonly group: readonly string[];
  /** What an extra's key is put behind. */
  readonly extraPrefix: readonly string[];
};

export type ListenerConfig = {
  readonly name: string;
  readonly address: Address;
  readonly mode: "http" | "passthrough";
  /** Of a passthrough, by the server's name; none: all backends behind every name. */
  readonly routes: readonly {
    readonly serverNames: readonly string[];
    readonly backends: readonly string[];
  }[];
  /** Undefined: plain HTTP, on loopback. */
  readonly tls: ListenerTls | undefined;
  /** What is served besides, by name. */
  readonly hosts: readonly HostConfig[];
  /** CIDRs, as `networksOf` takes them. */
  readonly trustedForwarders: readonly string[];
  readonly proxyProtocol: ProxyProtocolConfig;
  readonly connectionsPerSource: number;
};

export type ListenerTls = PairFiles & {
  /** Undefined: certificates of clients mean nobody. */
  readonly clientCaFile: string | undefined;
  readonly identity: IdentityPolicy;
};

export type HostConfig = {
  /** Lower case; "*." stands for one label. */
  readonly names: readonly string[];
  readonly tls: ListenerTls;
};

/** What becomes of client certificates. */
export type IdentityPolicy =
  | { readonly clientCerts: "reject" }
  | { readonly clientCerts: "impersonate" }
  | { readonly clientCerts: "lend" }
  | { readonly clientCerts: "front-proxy"; readonly names: HeaderNames };

export type DiscoveryConfig = {
  readonly intervalMs: number;
  /** Used only while no other backend is ready. */
  readonly fallback?: BackendConfig;
} & (
  | { readonly from: "dns"; readonly name: string; readonly port: number }
  | { readonly from: "file"; readonly file: string }
  /** Without a kubeconfig: the pod's service account. */
  | { readonly from: "endpointslice" | "leases"; readonly kubeconfigFile: string | undefined }
);

export type BackendConfig = { readonly name: string; readonly url: string } & BackendAddress;

/** `file` names the text in problems, and its directory is where relative paths start. */
export function parseConfig(text: string, file: string): Config | readonly Problem[] {
  if (text.length > limits.configBytes)
    return [problemOf(file, `is larger than ${limits.configBytes} bytes`)];
  const document = readYaml(text, file);
  if (isProblems(document)) return document;
  const { written, problems, amiss } = checkSchema(document);
  if (written === undefined) return problems;
  const breaches = checkRules(written, amiss).map(({ pointer, message }) => ({
    at: document.positionOf(pointer),
    field: fieldOf(pointer),
    message,
  }));
  if (problems.length + breaches.length === 0) return configOf(written, file);
  return [...problems, ...breaches].toSorted(inReadingOrder).slice(0, limits.configProblems);
}

/** A file that cannot be read is a problem like any other. */
export function loadConfig(file: string): Config | readonly Problem[] {
  const text = readText(file, limits.configBytes);
  return text instanceof Failure ? [problemOf(file, text.message)] : parseConfig(text, file);
}

/** Loads `file` again whenever it has changed; `onChange` hears of bad files too. Returns its stop function. */
export function watchConfig(
  file: string,
  options: { readonly clock: Clock; readonly onChange: (loaded: Config | readonly Problem[]) => void },
): () => void {
  const { clock, onChange } = options;
  return watchFiles([file], { clock, intervalMs: 1000, onChange: () => onChange(loadConfig(file)) });
}

function problemOf(file: string, message: string): Problem {
  return { at: `${file}:1:1`, field: "", message };
}

function configOf(written: Written, file: string): Config {
  const { upstream, health, drain } = written;
  const pathOf: PathOf = (path) => resolve(dirname(file), path);
  const frontProxy = upstream.tls?.frontProxy;
  const names = frontProxy && namesOf(frontProxy);
  return {
    file: resolve(file),
    written,
    name: written.metadata.name,
    listeners: written.listeners.map((listener) => listenerOf(listener, names, pathOf)),
    upstream: {
      backends: (upstream.backends ?? []).map(backendOf),
      discovery: upstream.discovery && discoveryOf(upstream.discovery, pathOf),
      tls: upstream.tls && upstreamTlsOf(upstream.tls, pathOf),
      lanes: { ...upstream.lanes },
      sharing: upstream.sharing,
      proxyProtocol: upstream.proxyProtocol === "off" ? undefined : upstream.proxyProtocol,
    },
    watches: { ...written.watches },
    health: {
      ping: {
        intervalMs: msOf(health.ping.interval),
        suspectAfterMs: msOf(health.ping.suspectAfter),
        deadAfterMs: msOf(health.ping.deadAfter),
      },
      probe: {
        path: health.probe.path,
        intervalMs: msOf(health.probe.interval),
        timeoutMs: msOf(health.probe.timeout),
      },
      keepalive: {
        idleMs: msOf(health.keepalive.idle),
        intervalMs: msOf(health.keepalive.interval),
        count: health.keepalive.count,
      },
    },
    drain: { readyDelayMs: msOf(drain.readyDelay), timeoutMs: msOf(drain.timeout) },
    admin: {
      address: addressOf(written.admin.address),
      metricsAddress: addressOf(written.admin.metricsAddress),
      operations: written.admin.operations,
    },
    logging: { ...written.logging },
  };
}

function listenerOf(
  listener: WrittenListener,
  names: HeaderNames | undefined,
  pathOf: PathOf,
): ListenerConfig {
  const { tls } = listener;
  return {
    name: listener.name,
    address: addressOf(listener.address),
    mode: listener.mode,
    routes: (listener.routes ?? []).map(({ serverNames = [], backends }) => ({ serverNames, backends })),
    tls: tls && servingOf({ ...listener, tls }, names, pathOf),
    hosts: listener.hosts.map((host) => ({
      names: lower(host.names),
      tls: servingOf(host, names, pathOf),
    })),
    trustedForwarders: listener.trustedForwarders,
    proxyProtocol: { ...listener.proxyProtocol },
    connectionsPerSource: listener.connectionsPerSource,
  };
}

function pairOf({ certFile, keyFile, reloadInterval }: WrittenPair, pathOf: PathOf): PairFiles {
  return {
    certFile: pathOf(certFile),
    keyFile: pathOf(keyFile),
    reloadIntervalMs: msOf(reloadInterval),
  };
}

function upstreamTlsOf(written: WrittenUpstreamTls, pathOf: PathOf): UpstreamTls {
  const { caFile, reloadInterval, serverName, frontProxy, impersonator } = written;
  return {
    caFile: pathOf(caFile),
    reloadIntervalMs: msOf(reloadInterval),
    serverName,
    frontProxy: frontProxy && { ...pairOf(frontProxy, pathOf), names: namesOf(frontProxy) },
    impersonator: impersonator && pairOf(impersonator, pathOf),
  };
}

function servingOf(
  { tls, identity }: Pick<WrittenHost, "tls" | "identity">,
  names: HeaderNames | undefined,
  pathOf: PathOf,
): ListenerTls {
  return {
    ...pairOf(tls, pathOf),
    clientCaFile: tls.clientCAFile && pathOf(tls.clientCAFile),
    identity: policyOf(identity.clientCerts, names),
  };
}

function policyOf(
  clientCerts: WrittenListener["identity"]["clientCerts"],
  names: HeaderNames | undefined,
): IdentityPolicy {
  if (clientCerts === "front-proxy") return { clientCerts, names: checked(names) };
  return { clientCerts };
}

function namesOf(written: NonNullable<WrittenUpstreamTls["frontProxy"]>): HeaderNames {
  return {
    user: lower(written.usernameHeaders),
    uid: lower(written.uidHeaders),
    group: lower(written.groupHeaders),
    extraPrefix: lower(written.extraHeadersPrefix),
  };
}

function lower(names: readonly string[]): string[] {
  return names.map((name) => name.toLowerCase());
}

type PathOf = (path: string) => string;

function backendOf({ name, url }: { readonly name: string; readonly url: string }): BackendConfig {
  return { name, url, ...backendAddressOf(url) };
}

function discoveryOf(written: WrittenDiscovery, pathOf: (path: string) => string): DiscoveryConfig {
  const { from, name, port = 6443, file, kubeconfigFile } = written;
  const all = {
    intervalMs: msOf(written.interval),
    ...(written.fallback === undefined ? {} : { fallback: backendOf(written.fallback) }),
  };
  if (from === "dns") return { from, ...all, name: checked(name), port };
  if (from === "file") return { from, ...all, file: pathOf(checked(file)) };
  return { from, ...all, kubeconfigFile: kubeconfigFile && pathOf(kubeconfigFile) };
}

const msOf = (text: string): number => checked(parseDuration(text));
const addressOf = (text: string): Address => checked(parseAddress(text));
const backendAddressOf = (url: string): BackendAddress => checked(parseBackendUrl(url));

/** The schema's formats are the same functions, and the rules ask for the rest: only a mistake of ours has no value. */
function checked<T>(value: T | undefined): T {
  assert(value !== undefined, "The schema let a text through that cannot be read");
  return value;
}
