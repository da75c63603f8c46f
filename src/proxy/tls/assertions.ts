/** How the listeners of a cluster assert identities with the proxy's own certificates. */
import { Failure } from "../../base/failure.ts";
import type { PairFiles } from "../../ops/config/cluster.ts";
import type { ConfigForCluster } from "../../ops/config/config.ts";
import type { AssertedTrust, AssertingPolicy } from "../../upstream/identity/asserted-identity.ts";
import { loadCa } from "./ca-bundle.ts";
import { certificatesIn, type ServingPair } from "./serving-pair.ts";

export type Assertion = {
  readonly policy: AssertingPolicy;
  /** The CA bundles that verify the clients whose identities are asserted. */
  readonly clientCaFiles: readonly string[];
};

export function assertionsIn({
  cluster,
  listeners,
}: ConfigForCluster): ReadonlyMap<AssertedTrust, Assertion> {
  const assertions = new Map<AssertedTrust, Assertion>();
  const served = listeners.flatMap((listener) => [listener, ...listener.hosts]);
  for (const { tls } of served.filter((one) => one.cluster === cluster.name)) {
    const policy = tls?.identity ?? { clientCerts: "Reject" };
    if (policy.clientCerts === "Reject") continue;
    const trust = policy.clientCerts === "FrontProxy" ? "front-proxy" : "impersonate";
    const clientCaFiles = tls?.clientCaFile === undefined ? [] : [tls.clientCaFile];
    assertions.set(trust, joined(assertions.get(trust), { policy, clientCaFiles }));
  }
  return assertions;
}

function joined(known: Assertion | undefined, other: Assertion): Assertion {
  if (known === undefined) return other;
  // If listeners both impersonate and act as the impersonator, the canary must show that it may impersonate.
  const isStricter = known.policy.clientCerts === "ActAsImpersonator";
  const policy = isStricter ? other.policy : known.policy;
  return { policy, clientCaFiles: [...known.clientCaFiles, ...other.clientCaFiles] };
}

export function pairFilesIn(
  { cluster: { tls } }: Pick<ConfigForCluster, "cluster">,
  trust: AssertedTrust,
): PairFiles | undefined {
  return trust === "front-proxy" ? tls?.frontProxy : tls?.impersonator;
}

/**
 * Returns why a certificate looks like an ordinary client certificate and not like a front proxy's; undefined: it does
 * not. Only a backend knows whether it names the certificate a front proxy all the same.
 */
export function suspicionOf(
  { chain }: ServingPair,
  trust: AssertedTrust,
  { clientCaFiles }: Assertion,
): string | undefined {
  const own = certificatesIn(chain);
  if (trust !== "front-proxy" || own instanceof Failure) return undefined;
  const file = clientCaFiles.find((one) => {
    const bundle = loadCa(one);
    const issuers = bundle instanceof Failure ? bundle : certificatesIn(bundle);
    if (issuers instanceof Failure) return false;
    return own.some((it) => issuers.some((ca) => it.checkIssued(ca) && it.verify(ca.publicKey)));
  });
  return file && `it is an ordinary client certificate: a CA in "${file}" has signed it`;
}
