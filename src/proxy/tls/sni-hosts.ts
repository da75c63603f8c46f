/**
 * What one address serves, by the name that a client asks for: each host has its own certificate, client CA and policy
 * (D9). A bad certificate costs its own host, and only as long as there was no good one before (seed 000).
 */
import type tls from "node:tls";
import { isIpAddress } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { HostConfig, IdentityPolicy, ListenerConfig } from "../../config/config.ts";
import type { Journal } from "../../events/journal.ts";
import { entryNamed } from "../net/client-hello.ts";
import { keepCertificate, type ServingCertificate } from "./certificates.ts";
import { hasAnyOf, type ServingPair, subjectsIn } from "./serving-pair.ts";

export type Host = {
  /** As the journal and the metrics name it: the listener's, with its first name behind it unless it is the default. */
  readonly name: string;
  /** Lower case; `*.` stands for one label. The default host has none. */
  readonly names: readonly string[];
  /** The cluster behind it, by its name. */
  readonly cluster: string;
  readonly policy: IdentityPolicy;
  /** Hosts of which this is the same may be asked for over each other's sessions: the same clients mean the same there. */
  readonly realm: string;
  /** Undefined while there is no good certificate. */
  readonly context: () => tls.SecureContext | undefined;
};

export type HostsParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Its client CA is another one: who was identified by the last one is to come again. */
  readonly onOtherCa: (host: string) => void;
};

/** Until when something holds, in milliseconds since 1970. */
export type Expiry = { readonly purpose: string; readonly name: string; readonly notAfterMs: number };

type Served = { readonly host: Host; readonly certificate: ServingCertificate };

export class Hosts {
  /** The default first. */
  readonly #served: readonly [Served, ...Served[]];

  private constructor(served: readonly [Served, ...Served[]]) {
    this.#served = served;
  }

  /** Loads them all; the Failure is the first one's, when none of them can be served. Undefined: plain text. */
  static async load(
    { name, cluster, tls: own, hosts }: ListenerConfig,
    parts: HostsParts,
  ): Promise<Hosts | undefined | Failure> {
    if (own === undefined) return undefined;
    // Of all hosts at once: OpenSSL takes what it does about tickets from the default one's context (A47).
    // Of a session that is resumed nobody tells us the name, so it would be the default host's, and its cluster's.
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
      const { certificate, failure } = await keepCertificate(loading);
      return { host: hostOf(config, called, certificate), certificate, failure };
    };
    const [first, ...others] = await Promise.all([
      load({ serverNames: [], cluster, tls: own }, name),
      ...hosts.map((host) => load(host, `${name}/${host.serverNames[0] ?? ""}`)),
    ]);
    const all = new Hosts([first, ...others]);
    if ([first, ...others].some(({ failure }) => failure === undefined)) return all;
    all.stop();
    return first.failure;
  }

  /** Whom a client means by this SNI; names that nobody has mean the default host. */
  find(servername: string): Host {
    return this.#named(servername) ?? this.#served[0].host;
  }

  get default(): Host {
    return this.#served[0].host;
  }

  /**
   * Which authorities one session of `host` may ask for (421 otherwise). Not the name of another host, of another cluster
   * or under another policy (A42). The default host's names are those of its certificate: they are refused to a client that
   * has asked for `host` by its name and may take the session for the default host's as well, since its certificate has that
   * name (RFC 9113 §9.1.1). All other names pass: clients dial by address, by a name in the cluster, or with
   * `--tls-server-name`.
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

  /** True for a name of the default host's certificate, and of `host`'s, where these are not the same to clients. */
  #isOfDefault(name: string, host: Host): boolean {
    const [first] = this.#served;
    if (first.host.realm === host.realm || isIpAddress(name.replace(/^\[|\]$/g, "")) || anyCluster.test(name))
      return false;
    const own = this.#served.find((served) => served.host === host);
    return [first, own].every(
      (one) => one?.certificate.isGood() === true && hasAnyOf([plain(name)], one.certificate.pair()),
    );
  }

  get hasSeveral(): boolean {
    return this.#served.length > 1;
  }

  /** Of purpose "serving", and "client-ca" where clients' certificates are asked for. */
  get certificates(): readonly Expiry[] {
    return this.#served
      .filter(({ certificate }) => certificate.isGood())
      .flatMap(({ host: { name }, certificate }) => {
        const ca = certificate.clientCaNotAfter();
        const serving = { purpose: "serving", name, notAfterMs: certificate.notAfter() };
        return ca === undefined ? [serving] : [serving, { purpose: "client-ca", name, notAfterMs: ca }];
      });
  }

  stop(): void {
    for (const { certificate } of this.#served) certificate.stop();
  }

  #named(name: string): Host | undefined {
    return entryNamed(this.#served, ({ host }) => host.names, plain(name))?.host;
  }
}

/** DNS knows neither case nor the root's dot (CVE-2026-48928: a capital letter went past the client CA). */
function plain(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

/** Names that mean the cluster, or the machine, of whoever asks: every apiserver's certificate has them. */
const anyCluster = /^(?:localhost|kubernetes(?:\.default(?:\.svc(?:\..*)?)?)?)\.?$/i;

/** Nobody who verifies would take it for this host; of one that was no better before that is no news. */
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
    context: () => (certificate.isGood() ? certificate.context() : undefined),
  };
}
