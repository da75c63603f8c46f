/** The closed list of incident kinds, with their severity and when they end. */
import { limits } from "../../base/limits.ts";
import { incidentLimits } from "./limits.ts";

/** The severity of the alert for this kind. It is "critical" only if clients get no service. */
export type Severity = "critical" | "warning";

/**
 * Properties of an incident kind. `alert`: the alert of deploy/monitoring/rules.yaml for this kind, and the name of its
 * runbook in docs/runbooks; undefined: no alert. `calmMs`: an incident of this kind ends after this many milliseconds
 * without new evidence; 0: it ends only when a journal entry reports the end of the problem.
 */
export type KindRow = {
  readonly severity: Severity;
  readonly alert?: string | undefined;
  readonly calmMs: number;
  readonly about: string;
};

/** Returns the row of a kind with severity "warning" and `calmMs` 0, unless `more` has other values. */
function kindOf(alert: string | undefined, about: string, more: Partial<KindRow> = {}): KindRow {
  return { severity: "warning", alert, calmMs: 0, about, ...more };
}

export const incidentKinds = {
  "backend-blackholed": kindOf(
    "WatchkeeperBackendDown",
    "The backend sends no bytes, and new connections to the backend time out",
  ),
  "backend-frozen": kindOf(
    "WatchkeeperBackendDown",
    "The backend's host accepts TCP connections, but the backend's process does not respond",
  ),
  "backend-packets-lost": kindOf(
    "WatchkeeperBackendDown",
    "Small packets from the backend arrive and large ones are lost: probably a path MTU problem",
  ),
  "backend-dead": kindOf(
    "WatchkeeperBackendDown",
    "The backend cannot be used: its host refuses connections, the last connection to it was lost, or its etcd has another history than clients have seen",
  ),
  "backend-unready": kindOf(
    "WatchkeeperBackendDown",
    "The backend responds, and its /readyz reports not ready",
  ),
  "backend-untrusted": kindOf(
    "WatchkeeperBackendDown",
    "TLS verification of the backend failed: wrong name, or a certificate that the CA bundle does not verify",
  ),
  "backend-stale": kindOf(
    "WatchkeeperBackendStale",
    "The backend responds, but its watch cache has stalled while the watch caches of other backends advance",
  ),
  "cache-progress-delayed": kindOf(
    "WatchkeeperBackendStale",
    "etcd sends progress notifications to the backend too rarely: quiet watches do not survive two restarts between two notifications",
  ),
  "watch-delayed": kindOf(
    "WatchkeeperBackendStale",
    "The backend's watches deliver changes seconds after the changes were written",
    { calmMs: incidentLimits.delayQuietMs },
  ),
  "backend-flapping": kindOf(
    "WatchkeeperBackendDown",
    "The backend failed several times within two minutes",
    {
      calmMs: incidentLimits.flappingMs,
    },
  ),
  "backend-api-missing": kindOf(
    undefined,
    "The backend does not serve an API that another backend serves: requests for this API go to the other backend",
    { calmMs: incidentLimits.quietMs },
  ),
  "backend-api-unreachable": kindOf(
    "WatchkeeperBackendStale",
    "The backend cannot reach the server of an aggregated API, which another backend reaches: requests for this API go to the other backend",
    { calmMs: incidentLimits.quietMs },
  ),
  "backend-webhook-failing": kindOf(
    "WatchkeeperBackendStale",
    "Calls of a webhook fail from this backend, while the same writes succeed at another backend",
    { calmMs: incidentLimits.quietMs },
  ),
  "all-backends-down": kindOf("WatchkeeperNoReadyBackends", "No backend is available", {
    severity: "critical",
  }),
  "watch-hung": kindOf(
    "WatchkeeperBackendStale",
    "Watches stopped receiving bookmarks while PINGs on their connection are answered",
    { calmMs: incidentLimits.quietMs },
  ),
  "watch-replay-loop": kindOf(
    "WatchkeeperWatchReplayLoop",
    "A client restarts a watch from the same version again and again, and replays history each time",
    { calmMs: incidentLimits.loopQuietMs },
  ),
  "version-regression": kindOf(
    "WatchkeeperWatchReplayLoop",
    "A backend sent a version older than one that a backend had sent before",
    { calmMs: incidentLimits.quietMs },
  ),
  "relist-storm": kindOf("WatchkeeperWatchesEnded", "Many clients list again at the same time", {
    calmMs: incidentLimits.stormQuietMs,
  }),
  "certificate-refused": kindOf(
    "WatchkeeperCertificateRefused",
    "A new certificate or key was rejected: the last valid one stays in use",
  ),
  "identity-refused": kindOf(
    "WatchkeeperIdentityRefused",
    "A backend does not accept the identities that the proxy asserts with its certificate: requests of clients with certificates do not go to this backend",
    { severity: "critical" },
  ),
  "certificate-expiring": kindOf("WatchkeeperCertificateExpiring", "A certificate expires soon"),
  "certificate-expired": kindOf(
    "WatchkeeperCertificateExpired",
    "A certificate has expired: new TLS connections with it fail",
    { severity: "critical" },
  ),
  "loopback-certificate-expiring": kindOf(
    "WatchkeeperLoopbackCertificateExpiring",
    "The loopback certificate of an apiserver expires soon: only a restart renews it",
  ),
  "lease-contested": kindOf(
    "WatchkeeperLeaseSuspect",
    "Two clients renew the same leader lease, or take it from each other",
    { calmMs: limits.leaseQuietMs },
  ),
  "lease-ghost-holder": kindOf(
    "WatchkeeperLeaseSuspect",
    "A leader lease is renewed by a process of a deleted pod, or with the token of another pod than the lease names",
    { calmMs: limits.leaseQuietMs },
  ),
  "lease-unknown-client": kindOf(
    "WatchkeeperLeaseSuspect",
    "A leader lease was acquired by a client with another identity and program than its earlier holders",
    { calmMs: limits.leaseQuietMs },
  ),
  "config-refused": kindOf("WatchkeeperConfigNotApplied", "A changed configuration was rejected"),
  "discovery-failed": kindOf(
    "WatchkeeperConfigNotApplied",
    "Discovery of backends or replicas fails: the last ones found stay in use",
  ),
  "listener-lost": kindOf("WatchkeeperInstanceUnhealthy", "A listener does not accept new connections"),
  overload: kindOf(
    "WatchkeeperOverload",
    "Buffers or queues of the process are full: requests are refused or aborted",
    { calmMs: incidentLimits.overloadQuietMs },
  ),
  "requests-limited": kindOf(
    "WatchkeeperClientsRefused",
    "A limit of the configuration refuses requests: their clients get 429",
    { calmMs: incidentLimits.limitQuietMs },
  ),
  "operator-limit": kindOf(
    "WatchkeeperClientsRefused",
    "A limit that an operator has set is in force: requests above it get 429",
  ),
  "internal-error": kindOf(
    "WatchkeeperInstanceUnhealthy",
    "An internal error ended a stream, a session, or one step of a part of the control side",
    { calmMs: incidentLimits.quietMs },
  ),
} satisfies Record<string, KindRow>;

export type IncidentKind = keyof typeof incidentKinds;

/** Returns the name of the alert about a kind of incident; undefined: there is none. */
export function alertOf(kind: string): string | undefined {
  const rows: Readonly<Record<string, KindRow>> = incidentKinds;
  return Object.hasOwn(rows, kind) ? rows[kind]?.alert : undefined;
}
