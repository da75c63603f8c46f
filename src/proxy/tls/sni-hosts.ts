/**
 * The hosts of one listener, selected by SNI (`find`, which handshake.ts calls): each host has a certificate, a client
 * CA and a policy of its own (D9). An unusable certificate affects no other host. A host that had a usable certificate
 * before keeps it (incident 000).
 */
import type tls from "node:tls";
import { isIpAddress } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import type { HostConfig, IdentityPolicy, ListenerConfig } from "../../ops/config/config.ts";
import { entryNamed } from "../../upstream/net/client-hello.ts";
import type { Certificate } from "../../x509/certificate.ts";
import { ServingCertificate } from "./certificates.ts";
import { hasAnyOf, type ServingPair, subjectsIn } from "./serving-pair.ts";

export type Host = {
  /**
   * The host's name in journal and metrics. For the default host it is the listener's name. For any other host it is
   * the listener's name and the host's first server name.
   */
  readonly name: string;
  /** Server names in lower case; a leading `*.` stands for one label. The default host has no names. */
  readonly names: readonly string[];
  readonly cluster: string;
  readonly policy: IdentityPolicy;
  /**
   * Hosts with the same realm give clients the same identities, so a TLS session with one host may be used for all
   * hosts of this realm.
   */
  readonly realm: string;
  /** Returns the host's TLS context; undefined until a usable certificate was loaded. */
  readonly context: () => tls.SecureContext | undefined;
  /** Returns the CAs that verify client certificates; empty: the host ignores them. */
  readonly clientCas: () => readonly Certificate[];
};

export type HostsParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Called when a client CA was replaced. Clients that the old CA identified must reconnect. */
  readonly onOtherCa: (host: string) => void;
};

export type Expiry = { readonly purpose: string; readonly name: string; readonly notAfterMs: number };

type Served = { readonly host: Host; readonly certificate: ServingCertificate };

export class Hosts {
  /** The default host comes first. */
  readonly #served: readonly [Served, ...Served[]];
  /** The default host's Failure if no host could be served when all were loaded; loading is tried again. */
  readonly failure: Failure | undefined;

  private constructor(served: readonly [Served, ...Served[]], failure: Failure | undefined) {
    this.#served = served;
    this.failure = failure;
  }

  /** Loads all hosts. Returns undefined for a listener without TLS. */
  static async load(
    { name, cluster, tls: own, hosts }: ListenerConfig,
    parts: HostsParts,
  ): Promise<Hosts | undefined> {
    if (own === undefined) return undefined;
    // If one host must not resume TLS sessions, no host of the listener may, because OpenSSL takes the ticket settings
    // of all hosts from the default host's context (A47). A listener with several hosts resumes no sessions at all: a
    // resumed session has no SNI, so it would get the default host and that host's cluster.
    const wholeOnly = hosts.length > 0 || own.clientCaFile !== undefined;
    const load = async (
      config: HostConfig,
      called: string,
    ): Promise<Served & { failure: Failure | undefined }> => {
      const { clock, journal, onOtherCa } = parts;
      const onSwap = (isOtherCa: boolean): void => {
        if (isOtherCa) onOtherCa(called);
      };
      const prove = async (pair: ServingPair, was: ServingPair): Promise<Failure | undefined> =>
        strangeTo(config.serverNames, pair, was);
      const loading = { ...config.tls, name: called, wholeOnly, clock, journal, onSwap, prove };
      const { certificate, failure } = await ServingCertificate.keep(loading);
      return { host: hostOf(config, called, certificate), certificate, failure };
    };
    const [first, ...others] = await Promise.all([
      load({ serverNames: [], cluster, tls: own }, name),
      ...hosts.map((host) => load(host, `${name}/${host.serverNames[0] ?? ""}`)),
    ]);
    const isAnyServed = [first, ...others].some(({ failure }) => failure === undefined);
    return new Hosts([first, ...others], isAnyServed ? undefined : first.failure);
  }

  /** Returns the host for this server name; for unknown names, the default host. */
  find(servername: string): Host {
    return this.#named(servername) ?? this.#served[0].host;
  }

  get default(): Host {
    return this.#served[0].host;
  }

  /**
   * Returns a function that decides to which authorities a session of `host` may send requests. The proxy answers all
   * others with 421. The function refuses the names of every host that belongs to another cluster or has another policy
   * (A42).
   *
   * The default host has no configured names; its names are those in its certificate. If the certificate of `host`
   * covers such a name, too, a client may reuse its session with `host` for a request to the default host (RFC 9113
   * §9.1.1). The function therefore refuses this name once the client has sent a name of `host` in the session. It
   * allows all other names, because clients dial by address, by a name in the cluster, or with `--tls-server-name`.
   */
  judge(host: Host): (authority: string) => boolean {
    let last: string | undefined;
    let mayAskLast = false;
    let hasAskedByName = false;
    return (authority) => {
      if (authority === last) return mayAskLast;
      const name = authority.replace(/:\d*$/, "");
      const named = this.#named(name);
      if (named === host) hasAskedByName = true;
      mayAskLast =
        named === undefined ? !(hasAskedByName && this.#isOfDefault(name, host)) : named.realm === host.realm;
      last = authority;
      return mayAskLast;
    };
  }

  /**
   * True if the name may belong to the default host: the default host and `host` have different realms, and both their
   * certificates cover the name.
   */
  #isOfDefault(name: string, host: Host): boolean {
    const [first] = this.#served;
    if (first.host.realm === host.realm || isIpAddress(name.replace(/^\[|\]$/g, "")) || anyCluster.test(name))
      return false;
    const own = this.#served.find((served) => served.host === host);
    return [first, own].every((served) => {
      const pair = served?.certificate.current?.pair;
      return pair !== undefined && hasAnyOf([plain(name)], pair);
    });
  }

  get hasSeveral(): boolean {
    return this.#served.length > 1;
  }

  /** The certificates in use: "serving", and "client-ca" where client certificates are verified. */
  get certificates(): readonly Expiry[] {
    return this.#served.flatMap(({ host: { name }, certificate: { current } }) => {
      if (current === undefined) return [];
      const serving = { purpose: "serving", name, notAfterMs: current.pair.notAfter };
      const notAfterMs = current.clientCaNotAfter;
      return notAfterMs === undefined ? [serving] : [serving, { purpose: "client-ca", name, notAfterMs }];
    });
  }

  stop(): void {
    for (const { certificate } of this.#served) certificate.stop();
  }

  #named(name: string): Host | undefined {
    return entryNamed(this.#served, ({ host }) => host.names, plain(name))?.host;
  }
}

/** DNS names ignore case and a trailing dot (CVE-2026-48928: a capital letter bypassed the client CA). */
function plain(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

/** Names with which every client means its own cluster or machine. Every apiserver's certificate contains them. */
const anyCluster = /^(?:localhost|kubernetes(?:\.default(?:\.svc(?:\..*)?)?)?)\.?$/i;

/** Returns a Failure if the certificate in use has one of the host's names and the new one has none. */
function strangeTo(names: readonly string[], pair: ServingPair, was: ServingPair): Failure | undefined {
  if (hasAnyOf(names, pair) || !hasAnyOf(names, was)) return undefined;
  const subject = JSON.stringify(subjectsIn(pair.chain)[0] ?? "");
  const message = `the certificate of ${subject} has none of the names ${names.join(", ")}`;
  return new Failure("bad-file", "proxy", message);
}

function hostOf(
  { serverNames: names, cluster, tls: config }: HostConfig,
  name: string,
  certificate: ServingCertificate,
): Host {
  return {
    name,
    names,
    cluster,
    policy: config.identity,
    realm: JSON.stringify([cluster, config.clientCaFile, config.identity]),
    context: () => certificate.current?.context,
    clientCas: () => certificate.current?.clientCas ?? [],
  };
}
