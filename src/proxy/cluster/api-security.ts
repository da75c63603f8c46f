/** What stands before the API: its certificate, and the cluster that is asked who may come in. */
import type tls from "node:tls";
import { wallClock } from "../../base/clock.ts";
import type { AdminConfig } from "../../config/admin.ts";
import { type Reviewer, reviewerOf } from "../../discovery/reviewer.ts";
import type { Journal } from "../../events/journal.ts";
import { keepCertificate, type ServingCertificate } from "../tls/certificates.ts";
import { serverTlsOptions } from "../tls/server-context.ts";
import type { Expiry } from "../tls/sni-hosts.ts";
import type { Cluster } from "./cluster.ts";

export type ApiSecurityParts = {
  readonly journal: Journal;
  /** By its name; undefined for one that a reload has taken away: then nobody is asked. */
  readonly clusterOf: (name: string) => Cluster | undefined;
};

export type ApiSecurity = {
  /** Undefined: plain HTTP. Its certificate may not be good yet. */
  readonly tls:
    | { readonly certificate: ServingCertificate; readonly options: tls.SecureContextOptions }
    | undefined;
  /** Undefined: nobody is asked. */
  readonly reviewer: Reviewer | undefined;
  readonly audiences: readonly string[];
};

/** As the journal and the metrics name its certificate. */
const name = "admin";

/** A bad certificate costs the API alone, until there is a good one: it is a window, and not worth an outage. */
export async function apiSecurityOf(
  config: AdminConfig,
  { journal, clusterOf }: ApiSecurityParts,
): Promise<ApiSecurity> {
  const { authorization, tls: files } = config;
  const kept = files && (await keepCertificate({ ...files, name, clock: wallClock, journal }));
  return {
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

/** Of purpose "serving". */
export function apiCertificates({ tls: own }: ApiSecurity): readonly Expiry[] {
  if (own === undefined || !own.certificate.isGood()) return [];
  return [{ purpose: "serving", name, notAfterMs: own.certificate.notAfter() }];
}

export function closeApiSecurity({ tls: own, reviewer }: ApiSecurity): void {
  own?.certificate.stop();
  reviewer?.stop();
}
