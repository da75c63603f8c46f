/** The closed list of events in the journal, by kind, with their fields. Names are `subject.past-tense`. */
type Events = {
  "listener.opened": { listener: string; address: string };
  /** The listener accepts no new clients. Written once; "listener.opened" follows when it has its port again. */
  "listener.lost": { listener: string; reason: string };
  "backend.changed": {
    backend: string;
    from: string;
    to: string;
    /** The detector, its measurement and the limit (0 if there is none), and a sentence. */
    detector: string;
    valueMs: number;
    limitMs: number;
    reason: string;
  };
  /** A reload added a cluster, or removed one with everything that belongs to it. */
  "cluster.added": object;
  "cluster.removed": object;
  /** It was configured or discovered; nothing is known about it yet. */
  "backend.added": { backend: string };
  /** It is no longer configured or discovered. */
  "backend.removed": { backend: string };
  /**
   * The result of a fresh socket to a backend that is not ready, if it differs from the previous one. `reached` is how
   * far it got: "tcp" means that a kernel accepted it and the process did not answer; "" means no answer at all.
   */
  "backend.probed": { backend: string; met: string; reached: "" | "tcp" | "tls"; ms: number; reason: string };
  "upstream_connection.opened": { backend: string; connection: string };
  "upstream_connection.closed": { backend: string; connection: string; reason: string };
  "downstream_connection.refused": { client: string; reason: string };
  "request.refused": { client: string; reason: string };
  "request.failed": {
    code: string;
    origin: string;
    message: string;
    auditId: string;
    /** The client, and the backend that was tried last, as far as known. */
    client?: string;
    userAgent?: string;
    backend?: string;
  };
  /** A request has ended; written as `logging.accessLog` requires. */
  "request.ended": {
    client: string;
    agent: string;
    /** The identity that the client claims. */
    subject: string;
    verb: string;
    /** Without the query. */
    path: string;
    /** Of a watch. */
    resource: string;
    /** The backend that answered, or the one tried last. */
    backend: string;
    /** 0: no response. */
    code: number;
    end: string;
    /** Response body bytes. */
    bytes: number;
    /** Of a watch: events forwarded, the version from which it would have continued, and how often it moved. */
    events: number;
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
    /** Of a watch over a WebSocket. */
    events?: number;
  };
  /** A TLS passthrough connection has ended; `sent` and `received` are bytes from the client's point of view. */
  "passthrough.ended": {
    client: string;
    listener: string;
    backend: string;
    /** "" if the client sent none. */
    serverName: string;
    reason: string;
    durationMs: number;
    sent: number;
    received: number;
  };
  /** A passthrough connection never reached a backend. */
  "passthrough.refused": { client: string; listener: string; code: string; origin: string; message: string };
  "config.reloaded": {
    file: string;
    /** Changed parts that take effect only after a restart. */
    waiting: readonly string[];
  };
  "config.refused": { file: string; problems: readonly string[] };
  "discovery.changed": { from: string; added: readonly string[]; removed: readonly string[] };
  /** Backends no longer listed, as after an etcd outage, but kept for a while because they answer. */
  "discovery.backends_retained": { from: string; names: readonly string[] };
  /** Written when discovery starts to fail and when the reason changes; the last discovered backends stay. */
  "discovery.failed": { from: string; reason: string };
  "discovery.recovered": { from: string };
  "certificate.loaded": { name: string; notAfter: string };
  /** A backend's certificate was first seen or has changed; `purpose`: "backend" or "backend-loopback". */
  "certificate.observed": { backend: string; purpose: string; notAfter: string };
  "certificate.refused": { name: string; problem: string };
  /** A certificate passed a threshold; written once for each. `leftMs` is negative after expiry. */
  "certificate.expiring": {
    purpose: string;
    name: string;
    notAfter: string;
    leftMs: number;
    limitMs: number;
  };
  /** A certificate reported as expiring was replaced in time, or is no longer used (`notAfter` is ""). */
  "certificate.renewed": { purpose: string; name: string; notAfter: string };
  "internal.error": { scope: "stream" | "session" | "timer" | "process" | "reader"; message: string };
  /** "" if all of its checks pass. */
  "probe.changed": { probe: string; complaint: string };
  /** Another watchkeeper process starts to take over the listening sockets. */
  "successor.started": { pid: number };
  /** The successor serves; this process drains. */
  "successor.ready": { pid: number };
  /** The successor does not serve; this process continues. */
  "successor.failed": { reason: string };
  /** Watches that moved within one second along the same path. The longest doubt before a move is included. */
  "watches.moved": { reason: string; from: string; to: string; count: number; slowestMs: number };
  /**
   * Watches that ended within one second for one reason although their clients wanted more events. Includes the
   * resource of the last one and the version from which it would have continued, "" if there is none.
   */
  "watches.ended": { reason: string; from: string; count: number; resource: string; version: string };
  /**
   * A backend has sent nothing new of a resource for `behindMs` after other backends delivered `peersVersion`, so its
   * watches of that resource are moved. Detected by a bookmark from this backend, or by one of its watches that should
   * have delivered that version.
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
   * `lateMs` after a list returned etcd's version, a backend's cache of that resource had not reached it: etcd notifies
   * it rarely, and the list did not trigger a notification. "cache.progress_restored" follows when it has caught up, or
   * when no watch needs it.
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
   * A client got a state older than what it had seen of the resource; at most once a minute for each client and
   * resource.
   */
  "response.stale": {
    client: string;
    userAgent: string;
    resource: string;
    backend: string;
    version: string;
    seen: string;
  };
  /** No backend could answer a client from the version that it had seen: it may get older state again. */
  "stale_read_guard.bypassed": { client: string; userAgent: string; resource: string; seen: string };
  /** A watch has missed its bookmarks while its upstream connection answers: it is opened on another backend as well. */
  "watch.hung": {
    client: string;
    userAgent: string;
    resource: string;
    backend: string;
    silentMs: number;
    limitMs: number;
  };
  /**
   * A backend sent an event older than one it had sent on the same watch before (incident 001); at most once a minute
   * for each backend and resource.
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
  /** Callers that had a watch list its resource again: this many of them within a few seconds, for whatever reason. */
  "relist_storm.detected": {
    relists: number;
    limit: number;
    withinMs: number;
    resource: string;
    /** The first few of them. */
    clients: readonly string[];
  };
  /**
   * A leader lease's renewals are suspect. `lease`: resource, namespace and name. `was`: the client that renewed it
   * before, or the pod that should renew it. At most once in a few seconds for each lease and verdict.
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
    /** The measurement and its limit, in ms; 0 if there is none. */
    valueMs: number;
    limitMs: number;
    reason: string;
    auditId: string;
  };
  /** Derived from earlier entries; the admin port has its evidence. */
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
   * A client has started the same watch from the same version this many times in a minute; at most once a minute for
   * each watch.
   */
  "watch.replay_loop": {
    client: string;
    userAgent: string;
    resource: string;
    version: string;
    times: number;
  };
  /** An operator has changed something at run time. `by` is the claimed identity and the address. */
  "operation.done": {
    operation: string;
    target: string;
    by: string;
    /** The operator's own text; "" if there is none. */
    reason: string;
    outcome: string;
  };
  /** An operation was requested and not done: it was impossible, or the request came from another origin's page. */
  "operation.refused": { operation: string; target: string; by: string; reason: string };
  /** The API rejects all clients because the cluster cannot verify their tokens. Written when the reason changes. */
  "review.failed": { review: string; reason: string };
  "drain.started": object;
  "drain.ended": { cut: number };
};

export type ProxyEvent = { [K in keyof Events]: { readonly kind: K } & Readonly<Events[K]> }[keyof Events];
