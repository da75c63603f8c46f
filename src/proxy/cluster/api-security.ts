/** What secures an admin port: its certificate, and the cluster that authorizes its users. */
import type tls from "node:tls";
import { wallClock } from "../../base/clock.ts";
import type { Journal } from "../../events/journal.ts";
import type { AccessConfig } from "../../ops/config/admin.ts";
import { type Reviewer, reviewerOf } from "../../ops/discovery/reviewer.ts";
import { ServingCertificate } from "../tls/certificates.ts";
import { serverTlsOptions } from "../tls/server-context.ts";
import type { Expiry } from "../tls/sni-hosts.ts";
import type { Cluster } from "./cluster.ts";

export type ApiSecurityParts = {
  /** Name of the certificate in the log and the metrics. */
  readonly name: "admin" | "metrics";
  readonly journal: Journal;
  /**
   * Returns the cluster that authorizes the port's users; undefined if a reload has removed the cluster. The port then
   * refuses every request.
   */
  readonly clusterOf: (name: string) => Cluster | undefined;
};

export type ApiSecurity = {
  readonly name: string;
  /**
   * The certificate and TLS options; undefined for plain HTTP. `certificate.current` is undefined until a usable
   * certificate was loaded.
   */
  readonly tls:
    | { readonly certificate: ServingCertificate; readonly options: tls.SecureContextOptions }
    | undefined;
  /** Asks the cluster what a user may do; undefined if no authorization is configured. */
  readonly reviewer: Reviewer | undefined;
  readonly audiences: readonly string[];
};

/** Loads a port's certificate. An unusable certificate disables only this port: it must not end the process. */
export async function apiSecurityOf(
  { authorization, tls: files }: AccessConfig,
  { name, journal, clusterOf }: ApiSecurityParts,
): Promise<ApiSecurity> {
  const kept = files && (await ServingCertificate.keep({ ...files, name, clock: wallClock, journal }));
  return {
    name,
    tls: kept && { certificate: kept.certificate, options: serverTlsOptions() },
    reviewer:
      authorization &&
      reviewerOf(
        authorization.kubeconfigFile,
        () =>
          clusterOf(authorization.cluster)?.backends.access ?? {
            servers: [],
            caFile: "",
            serverName: undefined,
          },
      ),
    audiences: authorization?.audiences ?? [],
  };
}

export function apiCertificates({ name, tls: own }: ApiSecurity): readonly Expiry[] {
  const served = own?.certificate.current;
  return served === undefined ? [] : [{ purpose: "serving", name, notAfterMs: served.pair.notAfter }];
}

export function closeApiSecurity({ tls: own, reviewer }: ApiSecurity): void {
  own?.certificate.stop();
  reviewer?.stop();
}
