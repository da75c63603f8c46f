import type { Met } from "../base/failure.ts";

/** A part of the control side (guarded-clock.ts). */
export type ControlPart = "admin" | "certificates" | "configuration" | "discovery" | "handover" | "tracing";

/**
 * Numbers of requests at `backend`: failed ones (`failed`) and all (`total`). The other fields are the same numbers for
 * `peer`, the backend with which `backend` is compared.
 */
type AtBackends = {
  backend: string;
  failed: number;
  total: number;
  peer: string;
  peerFailed: number;
  peerTotal: number;
};

/** The closed list of journal entries by kind, with their fields. A kind has the form `subject.what_happened`. */
type Events = {
  /**
   * The process begins to serve. `sha256`: hash of the configuration file, as sha256sum prints it. `backends`: name and
   * URL of each backend in the configuration; discovery may find more.
   */
  "process.started": {
    binaryVersion: string;
    nodeVersion: string;
    file: string;
    sha256: string;
    listeners: readonly string[];
    backends: readonly string[];
  };
  "listener.opened": { listener: string; address: string };
  /** The listener has lost its port and accepts no clients; "listener.opened" follows when it has the port again. */
  "listener.lost": { listener: string; reason: string };
  "backend.changed": {
    backend: string;
    from: string;
    to: string;
    /**
     * The detector that caused the change. `valueMs`: the time that it measured; 0: none. `limitMs`: the limit that
     * this time has exceeded; 0: none.
     */
    detector: string;
    valueMs: number;
    limitMs: number;
    reason: string;
  };
  "cluster.added": object;
  "cluster.removed": object;
  "backend.added": { backend: string };
  "backend.removed": { backend: string };
  /**
   * The latest attempt to connect to an unhealthy backend had another result than the attempt before it. `reached`:
   * "tls": TLS was established; "tcp": only the backend's kernel answered; "": no answer at all.
   */
  "backend.probed": { backend: string; met: Met; reached: "" | "tcp" | "tls"; ms: number; reason: string };
  /**
   * A backend does not serve a resource that another backend serves: the apiservers have different versions, or this
   * backend has not loaded a new CRD yet. `api`: for example "resource.k8s.io/v1".
   */
  "backend.api_missing": { backend: string; api: string; resource: string; servedBy: string };
  /**
   * A ready backend cannot reach the server of an aggregated API group, and another backend (`peer`) can. `failure`:
   * "refused": the backend's own response reports this; "unanswered": another backend answered a copy of the request
   * first. `failed`, `total`: requests within a minute. Written every few seconds while the problem lasts.
   */
  "backend.api_unreachable": { api: string; failure: "refused" | "unanswered" } & AtBackends;
  "backend.api_reachable": { backend: string; api: string };
  /**
   * A ready backend cannot call a webhook, but writes at another backend succeed. `failure` "unanswered": the call
   * timed out.
   */
  "backend.webhook_failing": {
    webhook: string;
    resource: string;
    failure: "refused" | "unanswered";
  } & AtBackends;
  /** A backend reported another version than before. `from` is "" for its first report. */
  "backend.version_changed": { backend: string; from: string; to: string };
  "upstream_connection.opened": { backend: string; connection: string };
  "upstream_connection.closed": { backend: string; connection: string; reason: string };
  "downstream_connection.refused": { client: string; reason: string };
  "request.refused": { client: string; reason: string };
  "request.failed": {
    code: string;
    origin: string;
    message: string;
    auditId: string;
    client?: string;
    userAgent?: string;
    /** The identity that the client claims; undefined for an Upgrade. */
    user?: string;
    verb?: string;
    /** The request's path, without the query, which may contain a token. */
    path?: string;
    backend?: string;
  };
  /** A request that `logging.accessLog` selects has ended. */
  "request.ended": {
    client: string;
    userAgent: string;
    /** The identity that the client claims. */
    user: string;
    verb: string;
    path: string;
    /** The resource of a watch; for other requests "". */
    resource: string;
    /** The backend that answered; if none did, the backend that was tried last. */
    backend: string;
    code: number;
    end: string;
    bytes: number;
    /** For a watch: number of forwarded events. */
    events: number;
    /** For a watch: the version from which another backend could continue it. */
    version: string;
    moves: number;
    durationMs: number;
    auditId: string;
  };
  "tunnel.opened": { client: string; backend: string; auditId: string };
  "tunnel.ended": {
    client: string;
    backend: string;
    auditId: string;
    reason: string;
    /** Number of watch events, if the Upgrade was a watch over a WebSocket. */
    events?: number;
  };
  /** A passthrough connection has ended. `sent`: bytes from the client; `received`: bytes to the client. */
  "passthrough.ended": {
    client: string;
    listener: string;
    backend: string;
    /** The server name in the client's TLS handshake; "": none. */
    serverName: string;
    reason: string;
    durationMs: number;
    sent: number;
    received: number;
  };
  /** A passthrough client was rejected, because no connection to a backend could be opened. */
  "passthrough.refused": { client: string; listener: string; code: string; origin: string; message: string };
  /** Written at the start if other machines can read the metrics without a token or in clear text. */
  "metrics.unprotected": { reason: string };
  "config.reloaded": {
    file: string;
    sha256: string;
    /** Names of the settings that have changed and take effect only after a restart. */
    waiting: readonly string[];
  };
  "config.refused": { file: string; problems: readonly string[] };
  "discovery.changed": { from: string; added: readonly string[]; removed: readonly string[] };
  /**
   * Discovery no longer lists these backends, for example after an outage of etcd. They still answer, so the proxy
   * keeps them for a while.
   */
  "discovery.backends_retained": { from: string; names: readonly string[] };
  /** Written when discovery starts to fail, or the reason changes. The last discovered backends stay in use. */
  "discovery.failed": { from: string; reason: string };
  "discovery.recovered": { from: string };
  /**
   * Another watchkeeper process in the list `admin.replicas` has answered for the first time, or again after it was
   * lost.
   */
  "replica.joined": { replica: string; address: string; binaryVersion: string };
  /** A replica has not answered for `silentMs`. `reason`: why the last request to it failed. */
  "replica.lost": { replica: string; address: string; silentMs: number; reason: string };
  "certificate.loaded": { name: string; notAfter: string };
  /** A backend presented a new certificate. `purpose`: "backend" or "backend-loopback" (probes/certificate.ts). */
  "certificate.observed": { backend: string; purpose: string; notAfter: string };
  "certificate.refused": { name: string; problem: string };
  /**
   * A canary has shown that the backend takes the identities that the proxy asserts with the certificate `name`. `gap`:
   * what it does not take; "": nothing.
   */
  "identity.proven": { name: string; backend: string; gap: string };
  /**
   * A canary has shown that the backend takes another identity than the asserted one, or a ready backend has answered
   * several canaries without a result. Requests that assert an identity do not go to this backend. `certificate`: the
   * subject of the certificate in `file`.
   */
  "identity.refused": { name: string; backend: string; file: string; certificate: string; problem: string };
  /** What is known about the backend no longer counts: the certificate was replaced, or the backend is gone. */
  "identity.dropped": { name: string; backend: string };
  /**
   * A certificate expires within `limitMs`. There are several such limits, and an entry is written once for each.
   * `leftMs`: time until the expiry, negative after it.
   */
  "certificate.expiring": {
    purpose: string;
    name: string;
    notAfter: string;
    leftMs: number;
    limitMs: number;
  };
  /** A certificate that was reported as expiring has been replaced, or is no longer used (then `notAfter` is ""). */
  "certificate.renewed": { purpose: string; name: string; notAfter: string };
  /** `scope`: what the error ended, or the part of the control side in which it was contained. */
  "internal.error": {
    scope: "stream" | "session" | "timer" | "promise" | "process" | "reader" | ControlPart;
    message: string;
  };
  /** The result of the proxy's own readiness check changed. `complaint`: the problem; "": the check succeeds. */
  "probe.changed": { probe: string; complaint: string };
  /** This process started another watchkeeper process, which takes over the listening sockets. */
  "successor.started": { pid: number };
  "successor.ready": { pid: number };
  "successor.failed": { reason: string };
  /** This process passed open sockets to another watchkeeper process on this machine, or received them from one. */
  "peer_sockets.passed": { listeners: number };
  "peer_sockets.received": { listeners: number };
  /**
   * The process cannot listen in `directory` for sockets that other processes pass to it. If the reason is that the
   * directory is unsafe, the process does not pass its own sockets to others either.
   */
  "peer_sockets.failed": { directory: string; reason: string };
  /**
   * This process started a worker, which is a process that serves some of the proxy's clients. `worker`: the worker's
   * number, from 1 on.
   */
  "worker.started": { worker: number; pid: number };
  "worker.ready": { worker: number; pid: number };
  /** A worker has ended or was killed, which closed its clients' connections. A new process starts in its place. */
  "worker.lost": { worker: number; pid: number; reason: string; sockets: number };
  /**
   * `count` watches moved within one second. `slowestMs`: the longest time from the moment at which a stream was lost
   * or became suspect until its watch continued.
   */
  "watches.moved": { reason: string; from: string; to: string; count: number; slowestMs: number };
  /**
   * `count` watches ended within one second although their clients wanted more events. `resource`: the resource of the
   * watch that ended last. `version`: the version from which this watch would have continued; "": unknown.
   */
  "watches.ended": { reason: string; from: string; count: number; resource: string; version: string };
  /**
   * Another backend delivered the version `peersVersion` of a resource `behindMs` ago, and `backend` has delivered no
   * new version of the resource since then. The proxy moves the watches of the resource from `backend` to other
   * backends.
   */
  "cache.stalled": {
    backend: string;
    resource: string;
    version: string;
    peersVersion: string;
    behindMs: number;
    detector: "bookmark" | "watch";
    watches: number;
  };
  "cache.recovered": { backend: string; resource: string; version: string };
  /**
   * A backend's watch cache for a resource has only reached `version`, although a consistent list that was sent
   * `lateMs` ago returned etcd's version `etcdVersion`. The cause is that etcd notifies the cache too rarely.
   * "cache.progress_restored" follows when the cache has reached `etcdVersion`, or when all watches have reached this
   * version.
   */
  "cache.progress_delayed": {
    backend: string;
    resource: string;
    version: string;
    etcdVersion: string;
    lateMs: number;
  };
  "cache.progress_restored": { backend: string; resource: string; version: string; lateMs: number };
  /**
   * `delayMs` after the response to a write, a backend's watches still have not delivered the event of this write.
   * `resource`: the resource with the longest delay. `resources`: number of delayed resources. `othersMs`: the longest
   * delay of `resource` at other backends; -1: not measured. Written every few seconds while the delay lasts.
   */
  "watch.delayed": {
    backend: string;
    resource: string;
    delayMs: number;
    limitMs: number;
    othersMs: number;
    resources: number;
  };
  /**
   * A client got an older state of a resource than it had seen before. Written at most once a minute for each client
   * and resource.
   */
  "response.stale": {
    client: string;
    userAgent: string;
    resource: string;
    backend: string;
    version: string;
    seen: string;
  };
  /** No backend had the version that the client has seen, so the client may get an older state. */
  "stale_read_guard.bypassed": { client: string; userAgent: string; resource: string; seen: string };
  /**
   * A watch has missed its bookmarks although its connection answers PINGs, so the proxy opens a second upstream stream
   * for the watch.
   */
  "watch.hung": {
    client: string;
    userAgent: string;
    resource: string;
    backend: string;
    silentMs: number;
    limitMs: number;
  };
  /**
   * A backend sent an event that is older than an earlier event of the same watch (incident 001). Written at most once
   * a minute for each backend and resource.
   */
  "event.version_regressed": {
    client: string;
    userAgent: string;
    resource: string;
    backend: string;
    type: string;
    version: string;
    seen: string;
  };
  /** No client is left with which the proxy could check whether a backend has the right etcd history again. */
  "history.unchecked": { backend: string; uncheckedMs: number };
  /** Within a few seconds, many clients have listed a resource again that they had been watching. */
  "relist_storm.detected": {
    relists: number;
    limit: number;
    withinMs: number;
    resource: string;
    clients: readonly string[];
  };
  /**
   * A client renewed a leader lease in a suspect way. `lease`: resource, namespace and name. `was`: the client that
   * renewed the lease before, or the pod that the lease names. Written at most once in a few seconds for each lease and
   * verdict.
   */
  "lease.suspect": {
    verdict: "contested" | "ghost" | "unknown";
    lease: string;
    holder: string;
    client: string;
    subject: string;
    userAgent: string;
    was: string;
    detector: string;
    /** The time that the detector measured; 0: none. */
    valueMs: number;
    limitMs: number;
    reason: string;
    auditId: string;
  };
  "incident.opened": {
    id: number;
    incident: string;
    subject: string;
    backend: string;
    severity: string;
    summary: string;
    detectionMs: number;
  };
  "incident.ended": {
    id: number;
    incident: string;
    subject: string;
    backend: string;
    lastedMs: number;
    watchesMoved: number;
    clients: number;
    reason: string;
  };
  /**
   * A client has started the same watch from the same version `times` times within a minute. Written at most once a
   * minute for each watch.
   */
  "watch.replay_loop": {
    client: string;
    userAgent: string;
    resource: string;
    version: string;
    times: number;
  };
  /** An operator has changed something at run time. `by`: the operator's claimed identity and address. */
  "operation.done": {
    operation: string;
    target: string;
    by: string;
    reason: string;
    outcome: string;
  };
  /**
   * An operation was refused, because it is impossible, the user lacks the permission, admin.readOnly forbids it, or
   * the request is not acceptable (for example, if it came from a web page of another origin).
   */
  "operation.refused": { operation: string; target: string; by: string; reason: string };
  /**
   * An operator has limited requests. `limit`: for example "limit 3". `allows`: which requests the limit counts, and
   * how many of them may pass.
   */
  "limit.added": { limit: string; allows: string; by: string; reason: string; endsAt: string };
  /** An operator's limit has ended. `refused`: number of requests that it has refused. */
  "limit.removed": { limit: string; refused: number; reason: string };
  /**
   * Requests get 429 because of a limit. Written at most once in ten seconds for each limit. `refused`: number of
   * requests that the limit has refused so far. The other fields describe the latest refused request.
   */
  "limit.refused": {
    limit: string;
    origin: "config" | "operator";
    allows: string;
    refused: number;
    client: string;
    userAgent: string;
    user: string;
  };
  /**
   * A TokenReview or SubjectAccessReview (`review`) has failed. Until reviews succeed again, the admin ports reject
   * requests whose permission is not cached. Written when the reason changes.
   */
  "review.failed": { review: string; reason: string };
  /** The collector does not accept the traces. Written when the reason changes. */
  "tracing.failed": { endpoint: string; reason: string };
  /**
   * The log and the event stream have omitted `count` entries of the kind `of` within `withinMs`, because clients
   * caused too many (event-kinds.ts). `clients`: the addresses that caused most of them, each with a number.
   */
  "entries.omitted": { of: string; count: number; withinMs: number; clients: readonly string[] };
  "drain.started": object;
  "drain.ended": { cut: number };
};

export type ProxyEvent = { [K in keyof Events]: { readonly kind: K } & Readonly<Events[K]> }[keyof Events];
