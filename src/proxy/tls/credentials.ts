/**
 * Our own certificates for backends: those with which we vouch for clients (D9). Watched, checked and swapped like a
 * serving certificate; whoever dials asks for the present one.
 */
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { FrontProxy, PairFiles } from "../../config/cluster.ts";
import type { ConfigForCluster } from "../../config/config.ts";
import type { Journal } from "../../events/journal.ts";
import type { VouchedTrust } from "../identity/client-identity.ts";
import type { TrustClass } from "../identity/trust.ts";
import type { BackendAddress } from "../net/connect.ts";
import { loadCertificate, type ServingCertificate } from "./certificates.ts";
import type { ServingPair } from "./serving-pair.ts";
import { provePair } from "./upstream-acceptance.ts";

export type CredentialsParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Told before their names: "eu/" for a cluster among others. */
  readonly prefix: string;
  /** A certificate has taken another's place: sessions that show the old one are to be replaced before it ends (A44). */
  readonly onSwap: (trust: VouchedTrust) => void;
  /** Those that can be asked whether they would take another one. */
  readonly ready: () => readonly BackendAddress[];
};

type Loaded = { readonly files: PairFiles; readonly certificate: ServingCertificate };

/** As the journal and the metrics name them. */
const names = { "front-proxy": "front-proxy", impersonate: "impersonator" } as const;

/** For whom a configuration can vouch. */
export function vouchedIn({ cluster: { tls } }: ConfigForCluster): readonly VouchedTrust[] {
  const { frontProxy, impersonator } = tls ?? {};
  return [
    ...(frontProxy === undefined ? [] : (["front-proxy"] as const)),
    ...(impersonator === undefined ? [] : (["impersonate"] as const)),
  ];
}

export class Credentials {
  readonly #parts: CredentialsParts;
  readonly #loaded = new Map<VouchedTrust, Loaded>();

  constructor(parts: CredentialsParts) {
    this.#parts = parts;
  }

  /**
   * Another configuration's certificates, or why they are not taken: then nothing has changed. One that is configured no
   * more stays for those who travel under it still; its listeners let them go.
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

  /** What to show on an upstream connection of this class; undefined: nothing. */
  pairFor(trust: TrustClass | undefined): ServingPair | undefined {
    if (trust !== "front-proxy" && trust !== "impersonate") return undefined;
    return this.#loaded.get(trust)?.certificate.pair();
  }

  get certificates(): readonly { readonly name: string; readonly notAfterMs: number }[] {
    return Array.from(this.#loaded, ([trust, { certificate }]) => ({
      name: this.#parts.prefix + names[trust],
      notAfterMs: certificate.notAfter(),
    }));
  }

  stop(): void {
    for (const { certificate } of this.#loaded.values()) certificate.stop();
  }

  async #load(
    trust: VouchedTrust,
    wanted: PairFiles | FrontProxy | undefined,
  ): Promise<readonly [VouchedTrust, Loaded] | undefined | Failure> {
    if (wanted === undefined || isSame(wanted, this.#loaded.get(trust)?.files)) return undefined;
    const { clock, journal, prefix, onSwap, ready } = this.#parts;
    const { certFile, keyFile, reloadIntervalMs } = wanted;
    const certificate = await loadCertificate({
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

  #take(trust: VouchedTrust, loaded: Loaded): void {
    const was = this.#loaded.get(trust);
    this.#loaded.set(trust, loaded);
    was?.certificate.stop();
    if (was !== undefined) this.#parts.onSwap(trust);
  }
}

/** A front proxy that speaks for nobody would be taken for a client, and its certificate for none of theirs. */
function fieldFor(wanted: PairFiles | FrontProxy): string {
  return "names" in wanted ? `${wanted.names.user[0] ?? ""}: watchkeeper-probe` : "";
}

function isSame(one: PairFiles, other: PairFiles | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
