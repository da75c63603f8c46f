/** The closed list of incident kinds, with their severity and when they end. */
import { limits } from "../base/limits.ts";
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
  readonly alert?: string;
  readonly calmMs: number;
  readonly about: string;
};

export const incidentKinds = {
  "backend-blackholed": {
    severity: "warning",
    alert: "WatchkeeperBackendDown",
    calmMs: 0,
    about: "The backend sends no bytes, and new connections to the backend time out",
  },
  "backend-frozen": {
    severity: "warning",
    alert: "WatchkeeperBackendDown",
    calmMs: 0,
    about: "The backend's host accepts TCP connections, but the backend's process does not respond",
  },
  "backend-packets-lost": {
    severity: "warning",
    alert: "WatchkeeperBackendDown",
    calmMs: 0,
    about: "Small packets from the backend arrive and large ones are lost: probably a path MTU problem",
  },
  "backend-dead": {
    severity: "warning",
    alert: "WatchkeeperBackendDown",
    calmMs: 0,
    about:
      "The backend cannot be used: its host refuses connections, the last connection to it was lost, or its etcd has another history than clients have seen",
  },
  "backend-unready": {
    severity: "warning",
    alert: "WatchkeeperBackendDown",
    calmMs: 0,
    about: "The backend responds, and its /readyz reports not ready",
  },
  "backend-untrusted": {
    severity: "warning",
    alert: "WatchkeeperBackendDown",
    calmMs: 0,
    about:
      "TLS verification of the backend failed: wrong name, or a certificate that the CA bundle does not verify",
  },
  "backend-stale": {
    severity: "warning",
    alert: "WatchkeeperBackendStale",
    calmMs: 0,
    about:
      "The backend responds, but its watch cache has stalled while the watch caches of other backends advance",
  },
  "cache-progress-delayed": {
    severity: "warning",
    alert: "WatchkeeperBackendStale",
    calmMs: 0,
    about:
      "etcd sends progress notifications to the backend too rarely: quiet watches do not survive two restarts between two notifications",
  },
  "watch-delayed": {
    severity: "warning",
    alert: "WatchkeeperBackendStale",
    calmMs: incidentLimits.delayQuietMs,
    about: "The backend's watches deliver changes seconds after the changes were written",
  },
  "backend-flapping": {
    severity: "warning",
    alert: "WatchkeeperBackendDown",
    calmMs: incidentLimits.flappingMs,
    about: "The backend failed several times within two minutes",
  },
  "backend-api-missing": {
    severity: "warning",
    calmMs: incidentLimits.quietMs,
    about:
      "The backend does not serve an API that another backend serves: requests for this API go to the other backend",
  },
  "backend-api-unreachable": {
    severity: "warning",
    alert: "WatchkeeperBackendStale",
    calmMs: incidentLimits.quietMs,
    about:
      "The backend cannot reach the server of an aggregated API, which another backend reaches: requests for this API go to the other backend",
  },
  "backend-webhook-failing": {
    severity: "warning",
    alert: "WatchkeeperBackendStale",
    calmMs: incidentLimits.quietMs,
    about: "Calls of a webhook fail from this backend, while the same writes succeed at another backend",
  },
  "all-backends-down": {
    severity: "critical",
    alert: "WatchkeeperNoReadyBackends",
    calmMs: 0,
    about: "No backend is available",
  },
  "watch-hung": {
    severity: "warning",
    alert: "WatchkeeperBackendStale",
    calmMs: incidentLimits.quietMs,
    about: "Watches stopped receiving bookmarks while PINGs on their connection are answered",
  },
  "watch-replay-loop": {
    severity: "warning",
    alert: "WatchkeeperWatchReplayLoop",
    calmMs: incidentLimits.loopQuietMs,
    about: "A client restarts a watch from the same version again and again, and replays history each time",
  },
  "version-regression": {
    severity: "warning",
    alert: "WatchkeeperWatchReplayLoop",
    calmMs: incidentLimits.quietMs,
    about: "A backend sent a version older than one that a backend had sent before",
  },
  "relist-storm": {
    severity: "warning",
    alert: "WatchkeeperWatchesEnded",
    calmMs: incidentLimits.stormQuietMs,
    about: "Many clients list again at the same time",
  },
  "certificate-refused": {
    severity: "warning",
    alert: "WatchkeeperCertificateRefused",
    calmMs: 0,
    about: "A new certificate or key was rejected: the last valid one stays in use",
  },
  "identity-refused": {
    severity: "critical",
    alert: "WatchkeeperIdentityRefused",
    calmMs: 0,
    about:
      "A backend does not accept the identities that the proxy asserts with its certificate: requests of clients with certificates do not go to this backend",
  },
  "certificate-expiring": {
    severity: "warning",
    alert: "WatchkeeperCertificateExpiring",
    calmMs: 0,
    about: "A certificate expires soon",
  },
  "certificate-expired": {
    severity: "critical",
    alert: "WatchkeeperCertificateExpired",
    calmMs: 0,
    about: "A certificate has expired: new TLS connections with it fail",
  },
  "loopback-certificate-expiring": {
    severity: "warning",
    alert: "WatchkeeperLoopbackCertificateExpiring",
    calmMs: 0,
    about: "The loopback certificate of an apiserver expires soon: only a restart renews it",
  },
  "lease-contested": {
    severity: "warning",
    alert: "WatchkeeperLeaseSuspect",
    calmMs: limits.leaseQuietMs,
    about: "Two clients renew the same leader lease, or take it from each other",
  },
  "lease-ghost-holder": {
    severity: "warning",
    alert: "WatchkeeperLeaseSuspect",
    calmMs: limits.leaseQuietMs,
    about:
      "A leader lease is renewed by a process of a deleted pod, or with the token of another pod than the lease names",
  },
  "lease-unknown-client": {
    severity: "warning",
    alert: "WatchkeeperLeaseSuspect",
    calmMs: limits.leaseQuietMs,
    about:
      "A leader lease was acquired by a client with another identity and program than its earlier holders",
  },
  "config-refused": {
    severity: "warning",
    alert: "WatchkeeperConfigNotApplied",
    calmMs: 0,
    about: "A changed configuration was rejected",
  },
  "discovery-failed": {
    severity: "warning",
    alert: "WatchkeeperConfigNotApplied",
    calmMs: 0,
    about: "Discovery of backends or replicas fails: the last ones found stay in use",
  },
  "listener-lost": {
    severity: "warning",
    alert: "WatchkeeperInstanceUnhealthy",
    calmMs: 0,
    about: "A listener does not accept new connections",
  },
  overload: {
    severity: "warning",
    alert: "WatchkeeperOverload",
    calmMs: incidentLimits.overloadQuietMs,
    about: "Buffers or queues of the process are full: requests are refused or aborted",
  },
  "requests-limited": {
    severity: "warning",
    alert: "WatchkeeperClientsRefused",
    calmMs: incidentLimits.limitQuietMs,
    about: "A limit of the configuration refuses requests: their clients get 429",
  },
  "operator-limit": {
    severity: "warning",
    alert: "WatchkeeperClientsRefused",
    calmMs: 0,
    about: "A limit that an operator has set is in force: requests above it get 429",
  },
  "internal-error": {
    severity: "warning",
    alert: "WatchkeeperInstanceUnhealthy",
    calmMs: incidentLimits.quietMs,
    about: "An internal error ended a stream, a session, or one step of a part of the control side",
  },
} as const satisfies Record<string, KindRow>;

export type IncidentKind = keyof typeof incidentKinds;

/** Returns the name of the alert about a kind of incident; undefined: there is none. */
export function alertOf(kind: string): string | undefined {
  const rows: Readonly<Record<string, KindRow>> = incidentKinds;
  return Object.hasOwn(rows, kind) ? rows[kind]?.alert : undefined;
}
