/**
 * The proxy's own client certificates for backends, with which it asserts the identities of clients (D9). They are
 * watched, checked and replaced like a serving certificate.
 */
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { FrontProxy, PairFiles } from "../../config/cluster.ts";
import type { ConfigForCluster } from "../../config/config.ts";
import type { Journal } from "../../events/journal.ts";
import type { AssertedTrust } from "../identity/asserted-identity.ts";
import type { TrustClass } from "../identity/trust.ts";
import type { BackendAddress } from "../net/connect.ts";
import { ServingCertificate } from "./certificates.ts";
import type { ServingPair } from "./serving-pair.ts";
import { provePair } from "./upstream-acceptance.ts";

export type CredentialsParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Prefix of the certificates' names in journal and metrics: "eu/" if there are several clusters, else "". */
  readonly prefix: string;
  /** Called when a certificate was replaced. Sessions that present the old one must end before it expires (A44). */
  readonly onSwap: (trust: AssertedTrust) => void;
  /** The backends at which a new certificate can be tried. */
  readonly ready: () => readonly BackendAddress[];
};

type Loaded = { readonly files: PairFiles; readonly certificate: ServingCertificate };

const names = { "front-proxy": "front-proxy", impersonate: "impersonator" } as const;

/** Returns the trust classes for which a configuration sets a certificate of the proxy's own. */
export function assertedIn({ cluster: { tls } }: ConfigForCluster): readonly AssertedTrust[] {
  const { frontProxy, impersonator } = tls ?? {};
  return [
    ...(frontProxy === undefined ? [] : (["front-proxy"] as const)),
    ...(impersonator === undefined ? [] : (["impersonate"] as const)),
  ];
}

export class Credentials {
  readonly #parts: CredentialsParts;
  readonly #loaded = new Map<AssertedTrust, Loaded>();

  constructor(parts: CredentialsParts) {
    this.#parts = parts;
  }

  /**
   * Loads the certificates of another configuration, and returns a function that puts them into use. On a Failure,
   * nothing has changed. A certificate that is no longer configured stays loaded, because some clients still need it
   * while their listeners drain them.
   */
  async prepare(config: ConfigForCluster): Promise<(() => undefined) | Failure> {
    const { frontProxy, impersonator } = config.cluster.tls ?? {};
    const outcomes = await Promise.all([
      this.#load("front-proxy", frontProxy),
      this.#load("impersonate", impersonator),
    ]);
    const failure = outcomes.find((outcome) => outcome instanceof Failure);
    const loaded = outcomes.flatMap((one) => (one instanceof Failure || one === undefined ? [] : [one]));
    if (failure === undefined)
      return () => {
        for (const [trust, one] of loaded) this.#take(trust, one);
        return undefined;
      };
    for (const [, { certificate }] of loaded) certificate.stop();
    return failure;
  }

  /** Returns the proxy's certificate for upstream connections of this trust class; undefined: none. */
  pairFor(trust: TrustClass | undefined): ServingPair | undefined {
    if (trust !== "front-proxy" && trust !== "impersonate") return undefined;
    return this.#loaded.get(trust)?.certificate.current?.pair;
  }

  get certificates(): readonly { readonly name: string; readonly notAfterMs: number }[] {
    return Array.from(this.#loaded, ([trust, { certificate }]) => ({
      name: this.#parts.prefix + names[trust],
      notAfterMs: certificate.current?.pair.notAfter ?? 0,
    }));
  }

  stop(): void {
    for (const { certificate } of this.#loaded.values()) certificate.stop();
  }

  async #load(
    trust: AssertedTrust,
    wanted: PairFiles | FrontProxy | undefined,
  ): Promise<readonly [AssertedTrust, Loaded] | undefined | Failure> {
    if (wanted === undefined || isSame(wanted, this.#loaded.get(trust)?.files)) return undefined;
    const { clock, journal, prefix, onSwap, ready } = this.#parts;
    const { certFile, keyFile, reloadIntervalMs } = wanted;
    const certificate = await ServingCertificate.load({
      name: prefix + names[trust],
      certFile,
      keyFile,
      reloadIntervalMs,
      clock,
      journal,
      onSwap: () => onSwap(trust),
      prove: (pair) => provePair(pair, { ready: ready(), field: fieldFor(wanted) }, clock),
    });
    return certificate instanceof Failure ? certificate : [trust, { files: wanted, certificate }];
  }

  #take(trust: AssertedTrust, loaded: Loaded): void {
    const was = this.#loaded.get(trust);
    this.#loaded.set(trust, loaded);
    was?.certificate.stop();
    if (was !== undefined) this.#parts.onSwap(trust);
  }
}

/**
 * Returns the header field that a test request needs besides its certificate; "": none. A front proxy's request must
 * name a user. Without one, the apiserver treats the front proxy as an ordinary client, and rejects its certificate.
 */
function fieldFor(wanted: PairFiles | FrontProxy): string {
  return "names" in wanted ? `${wanted.names.user[0] ?? ""}: watchkeeper-probe` : "";
}

function isSame(one: PairFiles, other: PairFiles | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
