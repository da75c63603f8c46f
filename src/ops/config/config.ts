/** Converts a configuration file to a Config, or to all its problems at once. */
import { hash } from "node:crypto";
import { availableParallelism } from "node:os";
import { dirname, resolve } from "node:path";
import type { Written, WrittenListener, WrittenServedHost } from "../../../config/schema/written.ts";
import { type Address, parseAddress } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { parseDuration } from "../../base/duration.ts";
import { Failure, wordsOf } from "../../base/failure.ts";
import { watchFiles } from "../../base/file-watcher.ts";
import { limits } from "../../base/limits.ts";
import { readText } from "../../base/read-text.ts";
import { type AdminConfig, adminOf } from "./admin.ts";
import {
  type ClusterConfig,
  checked,
  clusterOf,
  type HeaderNames,
  lower,
  type PairFiles,
  type PathOf,
  pairOf,
} from "./cluster.ts";
import { configLimits, mostWorkers } from "./limits.ts";
import { inReadingOrder, isProblems, type Problem } from "./problem.ts";
import { checkRules } from "./rules.ts";
import { checkSchema } from "./schema.ts";
import { fieldOf, readYaml } from "./yaml-document.ts";

/** The configuration with absolute paths, durations in milliseconds, and defaults. */
export type Config = {
  readonly file: string;
  /** The SHA-256 of the file's text in hexadecimal digits, as sha256sum prints it. */
  readonly sha256: string;
  /** The absolute path of each file that the configuration names. */
  readonly files: readonly string[];
  readonly written: Written;
  readonly name: string;
  readonly listeners: readonly ListenerConfig[];
  readonly clusters: readonly [ClusterConfig, ...ClusterConfig[]];
  /** The zone in which this process runs; undefined: unknown. */
  readonly zone?: string;
  /** Number of processes that serve clients; 1: this process serves them itself. */
  readonly workers: number;
  readonly watches: Written["watches"];
  readonly health: {
    readonly ping: {
      readonly intervalMs: number;
      readonly suspectAfterMs: number;
      readonly deadAfterMs: number;
      readonly deadAfterWhenAllSilentMs: number;
    };
    readonly probe: { readonly path: string; readonly intervalMs: number; readonly timeoutMs: number };
    readonly tcpKeepalive: { readonly idleMs: number; readonly intervalMs: number; readonly count: number };
  };
  readonly drain: {
    readonly shutdownDelayMs: number;
    readonly timeoutMs: number;
    /** Directory in which the processes of this machine pass sockets to each other; undefined: they do not. */
    readonly handoverDirectory?: string;
  };
  readonly admin: AdminConfig;
  readonly logging: Written["logging"];
  /** The collector and the share of requests to trace; undefined: no request is traced. */
  readonly tracing?: Written["tracing"];
};

export type ListenerConfig = {
  readonly name: string;
  readonly address: Address;
  readonly mode: "HTTP" | "Passthrough";
  /** Name of the cluster for all server names that have no entry in `hosts`. */
  readonly cluster: string;
  /** For mode Passthrough: the backends of each server name. If empty, all backends of `cluster` serve every name. */
  readonly routes: readonly RouteConfig[];
  /** The certificate and key; undefined: plain HTTP, which is allowed on loopback only. */
  readonly tls: ListenerTls | undefined;
  readonly hosts: readonly HostConfig[];
  /** Networks in CIDR notation whose X-Forwarded-For is trusted. */
  readonly trustedForwarderCIDRs: readonly string[];
  readonly proxyProtocol: WrittenListener["proxyProtocol"];
  readonly maxConnectionsPerSource: number;
  /** True if other processes of the same user may listen on the same address (SO_REUSEPORT). */
  readonly reusePort: boolean;
};

export type RouteConfig = {
  /** TLS server names of this route; empty: all names that no other route has, and clients that send no name. */
  readonly serverNames: readonly string[];
  readonly cluster: string;
  /** Names of the backends of `cluster` that serve this route; empty: all of them. */
  readonly backends: readonly string[];
};

export type ListenerTls = PairFiles & {
  /** The CA bundle that verifies client certificates; undefined: client certificates are ignored. */
  readonly clientCaFile: string | undefined;
  readonly identity: IdentityPolicy;
};

export type HostConfig = {
  /** TLS server names in lower case; "*." matches one label. */
  readonly serverNames: readonly string[];
  readonly cluster: string;
  readonly tls: ListenerTls;
};

export type ConfigForCluster = Omit<Config, "clusters"> & { readonly cluster: ClusterConfig };

export type IdentityPolicy =
  | { readonly clientCerts: "Reject" }
  /** `names`: header names that the proxy removes from clients' requests; undefined: the default names. */
  | { readonly clientCerts: "Impersonate" | "ActAsImpersonator"; readonly names?: HeaderNames }
  | { readonly clientCerts: "FrontProxy"; readonly names: HeaderNames };

export function configsByCluster({ clusters, ...rest }: Config): readonly ConfigForCluster[] {
  return clusters.map((cluster) => ({ ...rest, cluster }));
}

/**
 * Returns the changed settings that take effect only after a restart. `perClient`: requests that are open at the
 * reload cannot leave their shared connections, so a reload could not isolate clients. `workers`: clients cannot move
 * to another process.
 */
export function changedParts(before: Config, after: Config): readonly string[] {
  const workers = before.workers === after.workers ? [] : ["workers"];
  return workers.concat(changedPools(before, after));
}

function changedPools(before: Config, after: Config): readonly string[] {
  return after.clusters.flatMap(({ name, connectionPool: { perClient } }) =>
    perClientIn(before, name, perClient) === perClient ? [] : [`clusters.${name}.connectionPool.perClient`],
  );
}

function perClientIn({ clusters }: Config, name: string, otherwise: boolean): boolean {
  return clusters.find((cluster) => cluster.name === name)?.connectionPool.perClient ?? otherwise;
}

/**
 * Returns the configuration in effect after a reload: `after`, except for the settings that need a restart. The next
 * reload compares the new file with this result, so it reports these settings again.
 */
export function heldOf(before: Config, after: Config): Config {
  const held = (is: ClusterConfig): ClusterConfig => {
    const perClient = perClientIn(before, is.name, is.connectionPool.perClient);
    return { ...is, connectionPool: { ...is.connectionPool, perClient } };
  };
  const [first, ...others] = after.clusters;
  return { ...after, workers: before.workers, clusters: [held(first), ...others.map(held)] };
}

/**
 * Parses a configuration. Never throws: an exception is a problem of the file, because the file has caused it. `file`:
 * the file's name in problems; its directory is the base of relative paths.
 */
export function parseConfig(text: string, file: string): Config | readonly Problem[] {
  try {
    return parsed(text, file);
  } catch (reason) {
    return [problemOf(file, `cannot be read because of an internal error: ${wordsOf(reason)}`)];
  }
}

function parsed(text: string, file: string): Config | readonly Problem[] {
  if (text.length > limits.configBytes)
    return [problemOf(file, `is larger than ${limits.configBytes} bytes`)];
  const document = readYaml(text, file);
  if (isProblems(document)) return document;
  const { written, problems, invalid } = checkSchema(document);
  if (written === undefined) return problems;
  const breaches = checkRules(written, invalid).map(({ pointer, message }) => ({
    at: document.positionOf(pointer),
    field: fieldOf(pointer),
    message,
  }));
  if (problems.length + breaches.length === 0)
    return { ...configOf(written, file), sha256: hash("sha256", text) };
  return [...problems, ...breaches].toSorted(inReadingOrder).slice(0, configLimits.configProblems);
}

/** Loads a configuration file. A file that cannot be read is returned as a problem. */
export function loadConfig(file: string): Config | readonly Problem[] {
  const text = readText(file, limits.configBytes);
  return text instanceof Failure ? [{ at: file, field: "", message: text.message }] : parseConfig(text, file);
}

/** Calls `onChange` whenever `file` has changed, also with invalid content. Returns a function that ends the calls. */
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

function configOf(written: Written, file: string): Omit<Config, "sha256"> {
  const { health, drain } = written;
  const files = new Set<string>();
  const pathOf: PathOf = (path) => {
    const whole = resolve(dirname(file), path);
    files.add(whole);
    return whole;
  };
  const [first, ...others] = written.clusters.map((cluster) => clusterOf(cluster, pathOf));
  const clusters = [checked(first), ...others] as const;
  const config = {
    file: resolve(file),
    written,
    name: written.metadata.name,
    listeners: written.listeners.map((listener) => listenerOf(listener, clusters, pathOf)),
    clusters,
    ...(written.zone === undefined ? {} : { zone: written.zone }),
    workers: workersOf(written.workers),
    watches: { ...written.watches },
    health: {
      ping: {
        intervalMs: msOf(health.ping.interval),
        suspectAfterMs: msOf(health.ping.suspectAfter),
        deadAfterMs: msOf(health.ping.deadAfter),
        deadAfterWhenAllSilentMs: msOf(health.ping.deadAfterWhenAllSilent),
      },
      probe: {
        path: health.probe.path,
        intervalMs: msOf(health.probe.interval),
        timeoutMs: msOf(health.probe.timeout),
      },
      tcpKeepalive: {
        idleMs: msOf(health.tcpKeepalive.idleTime),
        intervalMs: msOf(health.tcpKeepalive.interval),
        count: health.tcpKeepalive.probes,
      },
    },
    drain: {
      shutdownDelayMs: msOf(drain.shutdownDelay),
      timeoutMs: msOf(drain.timeout),
      ...(drain.handoverDirectory === undefined
        ? {}
        : { handoverDirectory: resolve(dirname(file), drain.handoverDirectory) }),
    },
    admin: adminOf(written.admin, clusters[0].name, pathOf),
    logging: { ...written.logging },
    ...(written.tracing === undefined ? {} : { tracing: { ...written.tracing } }),
  };
  return { ...config, files: [...files] };
}

function listenerOf(listener: WrittenListener, clusters: Config["clusters"], pathOf: PathOf): ListenerConfig {
  const { tls } = listener;
  // A listener or host without `cluster` gets the only cluster. If there are several clusters, the rules require a
  // name.
  const only = clusters[0].name;
  const { cluster = only } = listener;
  const serving = (host: Pick<WrittenServedHost, "tls" | "identity">, name: string): ListenerTls => {
    const frontProxy = clusters.find((one) => one.name === name)?.tls?.frontProxy;
    return servingOf(host, frontProxy?.names, pathOf);
  };
  return {
    name: listener.name,
    address: addressOf(listener.address),
    mode: listener.mode,
    cluster,
    routes: (listener.routes ?? []).map(({ serverNames = [], cluster: own = only, backends = [] }) => ({
      serverNames,
      cluster: own,
      backends,
    })),
    tls: tls && serving({ ...listener, tls }, cluster),
    hosts: listener.hosts.map(({ cluster: own = only, ...host }) => ({
      serverNames: lower(host.serverNames),
      cluster: own,
      tls: serving(host, own),
    })),
    trustedForwarderCIDRs: listener.trustedForwarderCIDRs,
    proxyProtocol: { ...listener.proxyProtocol },
    maxConnectionsPerSource: listener.maxConnectionsPerSource,
    reusePort: listener.reusePort,
  };
}

function servingOf(
  { tls, identity }: Pick<WrittenServedHost, "tls" | "identity">,
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
  if (clientCerts === "FrontProxy") return { clientCerts, names: checked(names) };
  return clientCerts === "Reject" || names === undefined ? { clientCerts } : { clientCerts, names };
}

/** Returns the number of workers. "auto" means one for each core that this process may use. */
export function workersOf(written: Written["workers"]): number {
  return typeof written === "string" ? Math.min(mostWorkers, availableParallelism()) : written;
}

const msOf = (text: string): number => checked(parseDuration(text));
const addressOf = (text: string): Address => checked(parseAddress(text));
