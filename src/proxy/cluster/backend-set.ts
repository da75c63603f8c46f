/**
 * The backends of a cluster, their addresses, and the CA that verifies them. The configuration lists backends, and
 * discovery finds others. If a reload or a discovery fails, the backends stay the same.
 */
import { networkInterfaces } from "node:os";
import { type Address, isLoopback, overlaps, textOf } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { inPart } from "../../events/guarded-clock.ts";
import type { Journal } from "../../events/journal.ts";
import type { DiscoveryConfig, UpstreamTls } from "../../ops/config/cluster.ts";
import type { ConfigForCluster } from "../../ops/config/config.ts";
import { sourceOf } from "../../ops/discovery/discover.ts";
import type { Discovered } from "../../ops/discovery/discovered.ts";
import { Discovery } from "../../ops/discovery/discovery.ts";
import type { Access } from "../../ops/discovery/transport.ts";
import type { BackendAddress } from "../../upstream/net/connect.ts";
import type { Trusted } from "../../upstream/net/untrusted-certificate.ts";
import { alike, type BackendTraits } from "../../upstream/pool/backend-shares.ts";
import { CaBundle, type CaBundleOptions } from "../tls/ca-bundle.ts";
import type { Expiry } from "../tls/sni-hosts.ts";
import { proveCaBundle } from "../tls/upstream-acceptance.ts";

const fallbackCheckMs = 1000;

export type BackendSetParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Prefix that makes backend names unique across clusters, such as "eu/"; "" if the cluster has no label. */
  readonly prefix: string;
  /** Called with the names of all backends by `start`, and after each change. */
  readonly onChange: (names: readonly string[]) => void;
  /** True if the backend is ready. Discovery asks ready backends for the list of all backends. */
  readonly isReady: (name: string) => boolean;
  /** True if the backend is ready or suspect. */
  readonly answers: (name: string) => boolean;
  /** True if another process discovers the backends and passes them to `take`; default: this process discovers them. */
  readonly isTold?: boolean;
};

/** The settings in use. `caBundle` is undefined if all backends use plain HTTP, which is allowed on loopback only. */
type Settings = { readonly config: ConfigForCluster; readonly caBundle: CaBundle | undefined };

export class BackendSet {
  readonly #parts: BackendSetParts;
  #settings: Settings;
  #discovery: Discovery | undefined;
  /** The backends that another process has discovered; empty if this process discovers them itself. */
  #told: readonly Discovered[] = [];
  #addresses: ReadonlyMap<string, BackendAddress> = new Map();
  #traits: ReadonlyMap<string, BackendTraits> = new Map();
  #usesFallback = true;
  #stopLooking: () => void = () => {};

  private constructor(parts: BackendSetParts, settings: Settings) {
    this.#parts = parts;
    this.#settings = settings;
  }

  /** Creates the set. Nothing is opened before `start`. */
  static of(config: ConfigForCluster, parts: BackendSetParts): BackendSet | Failure {
    // `set` is undefined until the BackendSet exists. The CA bundle uses the set only later.
    let set: BackendSet | undefined;
    const { tls } = config.cluster;
    const caBundle = tls && CaBundle.load(optionsOf(tls, parts, { set: () => set }));
    if (caBundle instanceof Failure) return caBundle;
    set = new BackendSet(parts, { config, caBundle });
    return set;
  }

  start(): void {
    this.#settings.caBundle?.start();
    this.#discover();
    this.gather();
    this.#lookAtFallback();
  }

  /** Returns a function that applies the backends of another configuration. On a Failure, nothing has changed. */
  async prepare(config: ConfigForCluster): Promise<(() => void) | Failure> {
    const caBundle = await this.#caBundleFor(config);
    if (caBundle instanceof Failure) return caBundle;
    return () => {
      const { config: was, caBundle: last } = this.#settings;
      this.#settings = { config, caBundle };
      if (caBundle !== last) {
        last?.stop();
        caBundle?.start();
      }
      if (isSame(was.cluster.discovery, config.cluster.discovery)) this.gather();
      else this.#rediscover();
      this.#stopLooking();
      this.#lookAtFallback();
    };
  }

  stop(): void {
    this.#settings.caBundle?.stop();
    this.#stopLooking();
    this.#discovery?.stop();
    this.#discovery = undefined;
  }

  get certificates(): readonly Expiry[] {
    const { caBundle } = this.#settings;
    if (caBundle === undefined) return [];
    return [{ purpose: "backend-ca", name: caBundle.name, notAfterMs: caBundle.notAfterMs }];
  }

  get all(): readonly BackendAddress[] {
    return [...this.#addresses.values()];
  }

  get ready(): readonly BackendAddress[] {
    return this.all.filter(({ name }) => this.#parts.isReady(name));
  }

  /**
   * Returns the CA bundle for a configuration. If its file and reload interval are unchanged, reloads and returns the
   * present bundle. Those of another file must verify a ready backend, too, unless the backends change as well.
   */
  async #caBundleFor(config: ConfigForCluster): Promise<CaBundle | undefined | Failure> {
    const { config: was, caBundle } = this.#settings;
    const [last, next] = [was.cluster.tls, config.cluster.tls];
    if (isSame(readingOf(last), readingOf(next))) return (await caBundle?.reload()) ?? caBundle;
    const options = next && optionsOf(next, this.#parts, { set: () => this });
    const { backends, discovery } = was.cluster;
    // The present backends cannot test a CA of other backends.
    const mayTest = isSame([backends, discovery], [config.cluster.backends, config.cluster.discovery]);
    return options && (mayTest ? CaBundle.loadOther(options) : CaBundle.load(options));
  }

  addressOf(name: string): BackendAddress {
    // The backend may be removed just when a dial to it begins. A dial to port 0 fails.
    return this.#addresses.get(name) ?? { name, host: "127.0.0.1", port: 0, tls: undefined };
  }

  /**
   * Returns a backend's weight, and whether the backend is near (see `traitsIn`). The configuration or discovery states
   * both.
   */
  traitsOf(name: string): BackendTraits {
    return this.#traits.get(name) ?? alike;
  }

  get record(): Discovery["record"] | undefined {
    return this.#discovery?.record;
  }

  /** The discovered backends. */
  get found(): readonly Discovered[] {
    return this.#discovery?.found ?? this.#told;
  }

  /** Uses the backends that another process has discovered. */
  take(found: readonly Discovered[]): void {
    this.#told = found;
    this.gather();
  }

  #rediscover(): void {
    this.#discovery?.stop();
    this.#discover();
    this.gather();
  }

  #discover(): void {
    const config = this.#settings.config.cluster.discovery;
    if (config === undefined || this.#parts.isTold === true) {
      this.#discovery = undefined;
      return;
    }
    const { clock, journal, prefix } = this.#parts;
    const answers = (name: string): boolean => this.#parts.answers(prefix + name);
    // The present backends stay until the first result of the new discovery, so that clients do not notice the change.
    const found = Array.from(this.#addresses.values(), (one) => this.#foundOf(one));
    const source = sourceOf(config, { clock, access: () => this.access });
    const { intervalMs } = config;
    const onChange = (): void => this.gather();
    this.#discovery = new Discovery({
      clock,
      journal,
      prefix,
      source,
      intervalMs,
      found,
      answers,
      onChange,
    });
    inPart("discovery", () => this.#discovery?.start());
  }

  /** Returns a backend in the form that discovery returns: its name has no cluster prefix. */
  #foundOf({ name, host, port, tls }: BackendAddress): Discovered {
    return { name: name.slice(this.#parts.prefix.length), host, port, isEncrypted: tls !== undefined };
  }

  /**
   * The apiservers that discovery asks for the list of backends: all ready backends with TLS. If none is ready, all
   * backends with TLS, because some may answer.
   */
  get access(): Access {
    const { isReady } = this.#parts;
    const addresses = Array.from(this.#addresses.values()).filter(({ tls }) => tls !== undefined);
    const ready = addresses.filter(({ name }) => isReady(name));
    const { tls } = this.#settings.config.cluster;
    return {
      servers: (ready.length > 0 ? ready : addresses).map((one) => `https://${textOf(one)}${one.path ?? ""}`),
      caFile: tls?.caFile ?? "",
      serverName: tls?.serverName,
    };
  }

  /**
   * Checks periodically whether the fallback backend is needed, because a backend set is not notified when a health
   * state changes.
   */
  #lookAtFallback(): void {
    if (this.#settings.config.cluster.discovery?.fallback === undefined) return;
    this.#stopLooking = this.#parts.clock.after(fallbackCheckMs, () => {
      if (this.#usesFallback === this.#isAnyDiscoveredReady()) this.gather();
      this.#lookAtFallback();
    });
  }

  #isAnyDiscoveredReady(): boolean {
    const { prefix, isReady } = this.#parts;
    const fallback = this.#settings.config.cluster.discovery?.fallback?.name ?? "";
    return Array.from(this.#addresses.keys()).some((name) => name !== prefix + fallback && isReady(name));
  }

  gather(): void {
    const { config, caBundle } = this.#settings;
    const ca = caBundle?.ca;
    const { tls, discovery, proxyProtocol, pathPrefix } = config.cluster;
    this.#usesFallback = !this.#isAnyDiscoveredReady();
    const fallback = this.#usesFallback ? discovery?.fallback : undefined;
    const backends = [...config.cluster.backends, ...(fallback === undefined ? [] : [fallback])];
    const toAddress = (one: Discovered, name: string): BackendAddress => {
      const { host, port, isEncrypted } = one;
      return {
        name: this.#parts.prefix + one.name,
        host,
        port,
        path: pathPrefix,
        tls: isEncrypted
          ? { ca, serverName: tls?.serverName ?? name, source: trustSourceOf(tls) }
          : undefined,
        proxyProtocol,
      };
    };
    const listed = backends.map((one) => toAddress(one, one.host));
    const found = this.found
      .filter((one) => !isOwn(one, config))
      .map((one) => toAddress(one, nameFor(one, discovery)))
      .filter((one) => !isListed(one, listed))
      .slice(0, Math.max(0, limits.discoveredBackends - listed.length));
    this.#addresses = new Map([...listed, ...found].map((one) => [one.name, one]));
    // The configuration's backends come last, so that their weights and zones take precedence over those from
    // discovery.
    const stated = [...this.found, ...backends];
    this.#traits = new Map(stated.map((one) => [this.#parts.prefix + one.name, traitsIn(one, config.zone)]));
    this.#parts.onChange(Array.from(this.#addresses.keys()));
  }
}

/**
 * Returns a backend's weight, and whether the backend is near. It is near if it is in the zone of this process (`own`),
 * or if either zone is unknown.
 */
function traitsIn({ weight = 1, zone }: Discovered, own: string | undefined): BackendTraits {
  return { weight, isNear: own === undefined || zone === undefined || zone === own };
}

function trustSourceOf(tls: UpstreamTls | undefined): Trusted["source"] {
  return tls && { caFile: tls.caFile, isNamed: tls.serverName !== undefined };
}

const caBundleName = "backend-ca";

/** Returns which CA file is read, and how often. */
function readingOf(tls: UpstreamTls | undefined): unknown {
  return [tls?.caFile, tls?.reloadIntervalMs];
}

function optionsOf(
  tls: UpstreamTls,
  { clock, journal, prefix }: BackendSetParts,
  of: { readonly set: () => BackendSet | undefined },
): CaBundleOptions {
  return {
    name: prefix + caBundleName,
    file: tls.caFile,
    reloadIntervalMs: tls.reloadIntervalMs,
    clock,
    journal,
    prove: (ca) => proveCaBundle(ca, of.set()?.ready ?? [], clock),
    onSwap: () => of.set()?.gather(),
  };
}

/** Returns the name that the backend's certificate must have. With DNS discovery, it is the looked-up host name. */
function nameFor({ host }: Discovered, discovery: DiscoveryConfig | undefined): string {
  return discovery?.type === "DNS" ? discovery.hostname : host;
}

/** True if the configuration lists this backend; its settings then take precedence over what discovery has found. */
function isListed(one: BackendAddress, listed: readonly BackendAddress[]): boolean {
  return listed.some(({ name, host, port }) => name === one.name || (host === one.host && port === one.port));
}

/**
 * True if `found` is a listener of this proxy. The proxy itself is often published as an apiserver, and a request that
 * it sends to itself would loop. The port alone does not decide, because an apiserver on the same machine may use the
 * same port on another address.
 */
function isOwn(found: Discovered, { listeners }: ConfigForCluster): boolean {
  const isAt = ({ address }: { readonly address: Address }): boolean => {
    if (!overlaps(address, found)) return false;
    return !isAnyAddress.has(address.host) || isThisHost(found.host);
  };
  return listeners.some(isAt);
}

const isAnyAddress = new Set(["0.0.0.0", "::"]);

function isThisHost(host: string): boolean {
  const own = Object.values(networkInterfaces()).flatMap((some) => some ?? []);
  return isLoopback(host) || own.some(({ address }) => address === host);
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
