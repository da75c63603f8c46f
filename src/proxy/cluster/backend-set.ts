/**
 * Which backends there are, where each is, and who vouches for it: those that the configuration lists, and those that
 * discovery found. A reload or a discovery that fails changes nothing.
 */
import { networkInterfaces } from "node:os";
import { type Address, isLoopback, overlaps, textOf } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { DiscoveryConfig, UpstreamTls } from "../../config/cluster.ts";
import type { ConfigForCluster } from "../../config/config.ts";
import { sourceOf } from "../../discovery/discover.ts";
import type { Found, Question } from "../../discovery/discovered.ts";
import { Discovery } from "../../discovery/discovery.ts";
import type { Journal } from "../../events/journal.ts";
import type { BackendAddress } from "../net/connect.ts";
import type { Trusted } from "../net/untrusted-certificate.ts";
import { CaBundle } from "../tls/ca-bundle.ts";
import type { Expiry } from "../tls/sni-hosts.ts";
import { proveCaBundle } from "../tls/upstream-acceptance.ts";

export type BackendSetParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Told before each name: "eu/" for a cluster among others, so that no two backends have one name. */
  readonly prefix: string;
  /** The names of those that are there now. Called by `start`, and at each change from then on. */
  readonly onChange: (names: readonly string[]) => void;
  /** May the backend be asked where others are? */
  readonly isReady: (name: string) => boolean;
  /** Is it neither dead nor about to go? */
  readonly answers: (name: string) => boolean;
};

/** Without an authority every backend is plain http on loopback. */
type Settings = { readonly config: ConfigForCluster; readonly authority: CaBundle | undefined };

export class BackendSet {
  readonly #parts: BackendSetParts;
  #settings: Settings;
  #discovery: Discovery | undefined;
  #addresses: ReadonlyMap<string, BackendAddress> = new Map();
  #usesFallback = true;
  #stopLooking: () => void = () => {};

  private constructor(parts: BackendSetParts, settings: Settings) {
    this.#parts = parts;
    this.#settings = settings;
  }

  /** Undertakes nothing before it is started. */
  static of(config: ConfigForCluster, parts: BackendSetParts): BackendSet | Failure {
    // Asked only later on, when there is a set.
    let set: BackendSet | undefined;
    const authority = authorityOf(config, parts, { set: () => set });
    if (authority instanceof Failure) return authority;
    set = new BackendSet(parts, { config, authority });
    return set;
  }

  start(): void {
    this.#settings.authority?.start();
    this.#discover();
    this.gather();
    this.#lookAtFallback();
  }

  /** Another configuration's backends, or why they are not taken: then nothing has changed. */
  async prepare(config: ConfigForCluster): Promise<(() => void) | Failure> {
    const authority = await this.#authorityFor(config);
    if (authority instanceof Failure) return authority;
    return () => {
      const { config: was, authority: last } = this.#settings;
      this.#settings = { config, authority };
      if (authority !== last) {
        last?.stop();
        authority?.start();
      }
      if (isSame(was.cluster.discovery, config.cluster.discovery)) this.gather();
      else this.#rediscover();
      this.#stopLooking();
      this.#lookAtFallback();
    };
  }

  stop(): void {
    this.#settings.authority?.stop();
    this.#stopLooking();
    this.#discovery?.stop();
    this.#discovery = undefined;
  }

  /** Of purpose "backend-ca": until when those hold who vouch for the backends. */
  get certificates(): readonly Expiry[] {
    const { authority } = this.#settings;
    if (authority === undefined) return [];
    return [{ purpose: "backend-ca", name: authority.name, notAfterMs: authority.notAfterMs }];
  }

  /** Those that serve now. */
  get ready(): readonly BackendAddress[] {
    return Array.from(this.#addresses.values()).filter(({ name }) => this.#parts.isReady(name));
  }

  /** The same file goes on being watched; what stands in it now must do. */
  async #authorityFor(config: ConfigForCluster): Promise<CaBundle | undefined | Failure> {
    const { config: was, authority } = this.#settings;
    const [last, next] = [was.cluster.tls, config.cluster.tls];
    if (last?.caFile !== next?.caFile || last?.reloadIntervalMs !== next?.reloadIntervalMs)
      return authorityOf(config, this.#parts, { set: () => this });
    return (await authority?.reload()) ?? authority;
  }

  addressOf(name: string): BackendAddress {
    // An upstream connection may dial in the moment in which its backend is removed: nobody listens on port 0.
    return this.#addresses.get(name) ?? { name, host: "127.0.0.1", port: 0, tls: undefined };
  }

  /** Undefined when nothing is to be discovered. */
  get record(): Discovery["record"] | undefined {
    return this.#discovery?.record;
  }

  #rediscover(): void {
    this.#discovery?.stop();
    this.#discover();
    this.gather();
  }

  #discover(): void {
    const config = this.#settings.config.cluster.discovery;
    if (config === undefined) {
      this.#discovery = undefined;
      return;
    }
    const { clock, journal, prefix } = this.#parts;
    const answers = (name: string): boolean => this.#parts.answers(prefix + name);
    // What is there now stays until the first answer: clients are not to feel that it will be found another way.
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
    this.#discovery.start();
  }

  /** As a look would find it, which knows nothing of other clusters. */
  #foundOf({ name, host, port, tls }: BackendAddress): Found {
    return { name: name.slice(this.#parts.prefix.length), host, port, isEncrypted: tls !== undefined };
  }

  /** Where Kubernetes is asked. Those that serve come first; one that was never reached may still know. */
  get access(): Pick<Question, "servers" | "caFile" | "serverName"> {
    const { isReady } = this.#parts;
    const addresses = Array.from(this.#addresses.values()).filter(({ tls }) => tls !== undefined);
    const ready = addresses.filter(({ name }) => isReady(name));
    const { tls } = this.#settings.config.cluster;
    return {
      servers: (ready.length > 0 ? ready : addresses).map((one) => `https://${textOf(one)}`),
      caFile: tls?.caFile ?? "",
      serverName: tls?.serverName,
    };
  }

  /** It comes and goes by verdicts, which nobody tells: they are read now and then. */
  #lookAtFallback(): void {
    if (this.#settings.config.cluster.discovery?.fallback === undefined) return;
    this.#stopLooking = this.#parts.clock.after(limits.fallbackLookMs, () => {
      if (this.#usesFallback === this.#isFoundReady()) this.gather();
      this.#lookAtFallback();
    });
  }

  /** Serves one of those that the fallback stands in for? */
  #isFoundReady(): boolean {
    const { prefix, isReady } = this.#parts;
    const fallback = this.#settings.config.cluster.discovery?.fallback?.name ?? "";
    return Array.from(this.#addresses.keys()).some((name) => name !== prefix + fallback && isReady(name));
  }

  /** Who is where, and vouched for by whom, as it is now known. */
  gather(): void {
    const { config, authority } = this.#settings;
    const ca = authority?.ca;
    const { tls, discovery, proxyProtocol } = config.cluster;
    this.#usesFallback = !this.#isFoundReady();
    const fallback = this.#usesFallback ? discovery?.fallback : undefined;
    const backends = [...config.cluster.backends, ...(fallback === undefined ? [] : [fallback])];
    const vouched = (one: Found, name: string): BackendAddress => {
      const { host, port, isEncrypted } = one;
      return {
        name: this.#parts.prefix + one.name,
        host,
        port,
        tls: isEncrypted ? { ca, serverName: tls?.serverName ?? name, told: toldOf(tls) } : undefined,
        proxyProtocol,
      };
    };
    const listed = backends.map((one) => vouched(one, one.host));
    const found = (this.#discovery?.found ?? [])
      .filter((one) => !isOwn(one, config))
      .map((one) => vouched(one, nameFor(one, discovery)))
      .filter((one) => !isListed(one, listed))
      .slice(0, Math.max(0, limits.discoveredBackends - listed.length));
    this.#addresses = new Map([...listed, ...found].map((one) => [one.name, one]));
    this.#parts.onChange(Array.from(this.#addresses.keys()));
  }
}

function toldOf(tls: UpstreamTls | undefined): Trusted["told"] {
  return tls && { caFile: tls.caFile, isNamed: tls.serverName !== undefined };
}

/** As the journal and the metrics name it. */
const authorityName = "backend-ca";

function authorityOf(
  { cluster: { tls } }: ConfigForCluster,
  { clock, journal, prefix }: BackendSetParts,
  of: { readonly set: () => BackendSet | undefined },
): CaBundle | undefined | Failure {
  if (tls === undefined) return undefined;
  return CaBundle.load({
    name: prefix + authorityName,
    file: tls.caFile,
    reloadIntervalMs: tls.reloadIntervalMs,
    clock,
    journal,
    prove: (ca) => proveCaBundle(ca, of.set()?.ready ?? [], clock),
    onSwap: () => of.set()?.gather(),
  });
}

/** A certificate carries the name that was looked up rather than today's address. */
function nameFor({ host }: Found, discovery: DiscoveryConfig | undefined): string {
  return discovery?.type === "DNS" ? discovery.hostname : host;
}

/** The configuration's word on a backend counts, whoever else found it. */
function isListed(one: BackendAddress, listed: readonly BackendAddress[]): boolean {
  return listed.some(({ name, host, port }) => name === one.name || (host === one.host && port === one.port));
}

/**
 * We are often published as an apiserver ourselves; sent to us, a request would run in a circle. An apiserver of this
 * machine may have a listener's port on another address.
 */
function isOwn(found: Found, { listeners }: ConfigForCluster): boolean {
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
