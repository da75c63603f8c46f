/** What may be wrong, a closed list: how bad it is, and when it is over if no entry of the journal says so. */
import { limits } from "../base/limits.ts";

export type Severity = "critical" | "warning";

/** `calmMs`: over when nothing more of it was seen for so long; 0: an entry tells when it is over. */
export type KindRow = { readonly severity: Severity; readonly calmMs: number; readonly about: string };

export const incidentKinds = {
  "backend-blackholed": {
    severity: "critical",
    calmMs: 0,
    about: "Nothing comes from the backend, and new sockets to it are not even refused",
  },
  "backend-frozen": {
    severity: "critical",
    calmMs: 0,
    about: "The backend's host takes sockets, and its process says nothing on them",
  },
  "backend-packets-lost": {
    severity: "critical",
    calmMs: 0,
    about:
      "Small packets of the backend pass and large ones are lost: most likely a path MTU that is not told",
  },
  "backend-dead": {
    severity: "critical",
    calmMs: 0,
    about: "The backend's host refuses sockets: no process is there",
  },
  "backend-unready": {
    severity: "warning",
    calmMs: 0,
    about: "The backend answers, and says of itself that it is not ready",
  },
  "backend-untrusted": {
    severity: "critical",
    calmMs: 0,
    about: "Who answers at the backend's address has not its name, or a certificate that nobody vouches for",
  },
  "backend-stale": {
    severity: "critical",
    calmMs: 0,
    about: "The backend answers, and its cache stands still while others go on",
  },
  "cache-progress-delayed": {
    severity: "warning",
    calmMs: 0,
    about:
      "etcd notifies the backend's caches of progress rarely: quiet watches cannot follow two restarts within that time",
  },
  "backend-flapping": {
    severity: "warning",
    calmMs: limits.flappingMs,
    about: "The backend comes and goes",
  },
  "all-backends-down": { severity: "critical", calmMs: 0, about: "No backend can be asked" },
  "watch-hung": {
    severity: "warning",
    calmMs: limits.quietMs,
    about: "Watches have missed their bookmarks while their connection answers",
  },
  "watch-replay-loop": {
    severity: "warning",
    calmMs: limits.loopQuietMs,
    about: "A client asks for one watch from one version again and again, and replays history each time",
  },
  "version-regression": {
    severity: "warning",
    calmMs: limits.quietMs,
    about: "A backend showed something older than what it, or another, had shown before",
  },
  "relist-storm": {
    severity: "warning",
    calmMs: limits.stormQuietMs,
    about: "Many clients list everything again at once",
  },
  "certificate-refused": {
    severity: "critical",
    calmMs: 0,
    about: "A new certificate or key is not good: the last good one goes on serving",
  },
  "certificate-expiring": { severity: "warning", calmMs: 0, about: "A certificate expires soon" },
  "loopback-certificate-expiring": {
    severity: "critical",
    calmMs: 0,
    about: "The certificate with which an apiserver talks to itself expires soon: only a restart renews it",
  },
  "lock-contested": {
    severity: "critical",
    calmMs: limits.lockQuietMs,
    about: "Two clients hold one leader lock, or take it from each other",
  },
  "lock-ghost-holder": {
    severity: "critical",
    calmMs: limits.lockQuietMs,
    about: "A leader lock is renewed by somebody who is not the pod that it names",
  },
  "unknown-lock-client": {
    severity: "warning",
    calmMs: limits.lockQuietMs,
    about: "A leader lock was taken by somebody who is nothing like those that held it before",
  },
  "config-refused": { severity: "warning", calmMs: 0, about: "A changed configuration was not taken" },
  "discovery-failed": {
    severity: "warning",
    calmMs: 0,
    about: "Backends cannot be looked for: the last ones stay",
  },
  "listener-lost": { severity: "critical", calmMs: 0, about: "A listener takes no new clients" },
  overload: {
    severity: "critical",
    calmMs: limits.overloadQuietMs,
    about: "Too much waits in this process: requests are refused, or cut",
  },
  "internal-error": {
    severity: "warning",
    calmMs: limits.quietMs,
    about: "A fault of this process cost a stream, a session, or what a timer was to do",
  },
} as const satisfies Record<string, KindRow>;

export type IncidentKind = keyof typeof incidentKinds;
