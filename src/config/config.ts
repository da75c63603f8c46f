/**
 * A configuration file → Config, or all its problems at once. Nothing here decides what to do about a bad file:
 * whoever holds the last good Config keeps it.
 */
import { dirname, resolve } from "node:path";
import { type Address, parseAddress } from "../base/address.ts";
import type { Clock } from "../base/clock.ts";
import { parseDuration } from "../base/duration.ts";
import { Failure } from "../base/failure.ts";
import { limits } from "../base/limits.ts";
import { readText } from "../base/read-text.ts";
import { watchFiles } from "../base/watch-files.ts";
import { type AdminConfig, adminOf } from "./admin.ts";
import { inReadingOrder, isProblems, type Problem } from "./problem.ts";
import { checkRules } from "./rules.ts";
import {
  checkSchema,
  type ProxyProtocolConfig,
  type Written,
  type WrittenHost,
  type WrittenListener,
  writtenUpstreams,
} from "./schema.ts";
import {
  checked,
  type HeaderNames,
  lower,
  type PairFiles,
  type PathOf,
  pairOf,
  type UpstreamConfig,
  upstreamOf,
} from "./upstream.ts";
import { fieldOf, readYaml } from "./yaml-document.ts";

/** What an operator decides. Paths are absolute, durations milliseconds, nothing is left out. */
export type Config = {
  readonly file: string;
  /** The file's own shape, with its defaults. */
  readonly written: Written;
  readonly name: string;
  readonly listeners: readonly ListenerConfig[];
  /** The clusters, at least one. */
  readonly upstreams: readonly [UpstreamConfig, ...UpstreamConfig[]];
  readonly watches: {
    readonly bookmarks: "always" | "as-asked";
    readonly timeTravelGuard: "observe" | "enforce" | "off";
    readonly aggregatedGroups: readonly string[];
    readonly customGroups: readonly string[];
  };
  readonly health: {
    readonly ping: {
      readonly intervalMs: number;
      readonly suspectAfterMs: number;
      readonly deadAfterMs: number;
      readonly deadAfterAllMs: number;
    };
    readonly probe: { readonly path: string; readonly intervalMs: number; readonly timeoutMs: number };
    readonly keepalive: { readonly idleMs: number; readonly intervalMs: number; readonly count: number };
  };
  readonly drain: { readonly readyDelayMs: number; readonly timeoutMs: number };
  readonly admin: AdminConfig;
  readonly logging: {
    readonly format: "json" | "text";
    readonly accessLog: "off" | "errors" | "longrunning" | "all";
  };
};

export type ListenerConfig = {
  readonly name: string;
  readonly address: Address;
  readonly mode: "http" | "passthrough";
  /** The cluster behind it, by its name; behind names that no host has, if there are hosts. */
  readonly upstream: string;
  /** Of a passthrough, by the server's name; none: all backends of `upstream` behind every name. */
  readonly routes: readonly RouteConfig[];
  /** Undefined: plain HTTP, on loopback. */
  readonly tls: ListenerTls | undefined;
  /** What is served besides, by name. */
  readonly hosts: readonly HostConfig[];
  /** CIDRs, as `networksOf` takes them. */
  readonly trustedForwarders: readonly string[];
  readonly proxyProtocol: ProxyProtocolConfig;
  readonly connectionsPerSource: number;
};

export type RouteConfig = {
  /** None: every other name, and no name at all. */
  readonly serverNames: readonly string[];
  readonly upstream: string;
  /** None: all that the cluster has. */
  readonly backends: readonly string[];
};

export type ListenerTls = PairFiles & {
  /** Undefined: certificates of clients mean nobody. */
  readonly clientCaFile: string | undefined;
  readonly identity: IdentityPolicy;
};

export type HostConfig = {
  /** Lower case; "*." stands for one label. */
  readonly names: readonly string[];
  /** The cluster behind it, by its name. */
  readonly upstream: string;
  readonly tls: ListenerTls;
};

/** What of a configuration concerns one cluster. */
export type ClusterConfig = Omit<Config, "upstreams"> & { readonly upstream: UpstreamConfig };

/** What becomes of client certificates. */
export type IdentityPolicy =
  | { readonly clientCerts: "reject" }
  /** `names`: left out, the usual ones are dropped of what clients send. */
  | { readonly clientCerts: "impersonate" | "lend"; readonly names?: HeaderNames }
  | { readonly clientCerts: "front-proxy"; readonly names: HeaderNames };

export function clusterConfigs({ upstreams, ...rest }: Config): readonly ClusterConfig[] {
  return upstreams.map((upstream) => ({ ...rest, upstream }));
}

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
  return text instanceof Failure ? [{ at: file, field: "", message: text.message }] : parseConfig(text, file);
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
  const { health, drain } = written;
  const pathOf: PathOf = (path) => resolve(dirname(file), path);
  const [first, ...others] = writtenUpstreams(written).map(({ upstream }) => upstreamOf(upstream, pathOf));
  const upstreams = [checked(first), ...others] as const;
  return {
    file: resolve(file),
    written,
    name: written.metadata.name,
    listeners: written.listeners.map((listener) => listenerOf(listener, upstreams, pathOf)),
    upstreams,
    watches: { ...written.watches },
    health: {
      ping: {
        intervalMs: msOf(health.ping.interval),
        suspectAfterMs: msOf(health.ping.suspectAfter),
        deadAfterMs: msOf(health.ping.deadAfter),
        deadAfterAllMs: msOf(health.ping.deadAfterAll),
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
    admin: adminOf(written.admin, upstreams[0].name, pathOf),
    logging: { ...written.logging },
  };
}

function listenerOf(
  listener: WrittenListener,
  upstreams: Config["upstreams"],
  pathOf: PathOf,
): ListenerConfig {
  const { tls } = listener;
  // Where there are several the rules saw to it that each is named; a passthrough's routes name theirs.
  const only = upstreams[0].name;
  const { upstream = only } = listener;
  const serving = (host: Pick<WrittenHost, "tls" | "identity">, name: string): ListenerTls => {
    const frontProxy = upstreams.find((one) => one.name === name)?.tls?.frontProxy;
    return servingOf(host, frontProxy?.names, pathOf);
  };
  return {
    name: listener.name,
    address: addressOf(listener.address),
    mode: listener.mode,
    upstream,
    routes: (listener.routes ?? []).map(({ serverNames = [], upstream: own = only, backends = [] }) => ({
      serverNames,
      upstream: own,
      backends,
    })),
    tls: tls && serving({ ...listener, tls }, upstream),
    hosts: listener.hosts.map(({ upstream: own = only, ...host }) => ({
      names: lower(host.names),
      upstream: own,
      tls: serving(host, own),
    })),
    trustedForwarders: listener.trustedForwarders,
    proxyProtocol: { ...listener.proxyProtocol },
    connectionsPerSource: listener.connectionsPerSource,
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
  return clientCerts === "reject" || names === undefined ? { clientCerts } : { clientCerts, names };
}

const msOf = (text: string): number => checked(parseDuration(text));
const addressOf = (text: string): Address => checked(parseAddress(text));
