/** The closed list of events in the journal. Names are `subject.past-tense`. */
export type ProxyEvent =
  | { readonly kind: "listener.opened"; readonly listener: string; readonly address: string }
  /** The listener accepts no new clients. Written once; "listener.opened" follows when it has its port again. */
  | { readonly kind: "listener.lost"; readonly listener: string; readonly reason: string }
  | {
      readonly kind: "backend.changed";
      readonly backend: string;
      readonly from: string;
      readonly to: string;
      /** The detector, its measurement and the limit (0 if there is none), and a sentence. */
      readonly detector: string;
      readonly valueMs: number;
      readonly limitMs: number;
      readonly reason: string;
    }
  /** A reload added a cluster, or removed one with everything that belongs to it. */
  | { readonly kind: "cluster.added" }
  | { readonly kind: "cluster.removed" }
  /** It was configured or discovered; nothing is known about it yet. */
  | { readonly kind: "backend.added"; readonly backend: string }
  /** It is no longer configured or discovered. */
  | { readonly kind: "backend.removed"; readonly backend: string }
  /**
   * The result of a fresh socket to a backend that is not ready, if it differs from the previous one. `reached` is how
   * far it got: "tcp" means that a kernel accepted it and the process did not answer; "" means no answer at all.
   */
  | {
      readonly kind: "backend.probed";
      readonly backend: string;
      readonly met: string;
      readonly reached: "" | "tcp" | "tls";
      readonly ms: number;
      readonly reason: string;
    }
  | { readonly kind: "upstream_connection.opened"; readonly backend: string; readonly connection: string }
  | {
      readonly kind: "upstream_connection.closed";
      readonly backend: string;
      readonly connection: string;
      readonly reason: string;
    }
  | { readonly kind: "downstream_connection.refused"; readonly client: string; readonly reason: string }
  | { readonly kind: "request.refused"; readonly client: string; readonly reason: string }
  | {
      readonly kind: "request.failed";
      readonly code: string;
      readonly origin: string;
      readonly message: string;
      readonly auditId: string;
      /** The client, and the backend that was tried last, as far as known. */
      readonly client?: string;
      readonly userAgent?: string;
      readonly backend?: string;
    }
  /** A request has ended; written as `logging.accessLog` requires. */
  | {
      readonly kind: "request.ended";
      readonly client: string;
      readonly agent: string;
      /** The identity that the client claims. */
      readonly subject: string;
      readonly verb: string;
      /** Without the query. */
      readonly path: string;
      /** Of a watch. */
      readonly resource: string;
      /** The backend that answered, or the one tried last. */
      readonly backend: string;
      /** 0: no response. */
      readonly code: number;
      readonly end: string;
      /** Response body bytes. */
      readonly bytes: number;
      /** Of a watch: events forwarded, the version from which it would have continued, and how often it moved. */
      readonly events: number;
      readonly version: string;
      readonly moves: number;
      readonly durationMs: number;
      readonly auditId: string;
    }
  | {
      readonly kind: "tunnel.opened";
      readonly client: string;
      readonly backend: string;
      readonly auditId: string;
    }
  | {
      readonly kind: "tunnel.ended";
      readonly client: string;
      readonly backend: string;
      readonly auditId: string;
      readonly reason: string;
      /** Of a watch over a WebSocket. */
      readonly events?: number;
    }
  /** A TLS passthrough connection has ended; `sent` and `received` are bytes from the client's point of view. */
  | {
      readonly kind: "passthrough.ended";
      readonly client: string;
      readonly listener: string;
      readonly backend: string;
      /** "" if the client sent none. */
      readonly serverName: string;
      readonly reason: string;
      readonly durationMs: number;
      readonly sent: number;
      readonly received: number;
    }
  /** A passthrough connection never reached a backend. */
  | {
      readonly kind: "passthrough.refused";
      readonly client: string;
      readonly listener: string;
      readonly code: string;
      readonly origin: string;
      readonly message: string;
    }
  | {
      readonly kind: "config.reloaded";
      readonly file: string;
      /** Changed parts that take effect only after a restart. */
      readonly waiting: readonly string[];
    }
  | { readonly kind: "config.refused"; readonly file: string; readonly problems: readonly string[] }
  | {
      readonly kind: "discovery.changed";
      readonly from: string;
      readonly added: readonly string[];
      readonly removed: readonly string[];
    }
  /** Backends no longer listed, as after an etcd outage, but kept for a while because they answer. */
  | { readonly kind: "discovery.backends_retained"; readonly from: string; readonly names: readonly string[] }
  /** Written when discovery starts to fail and when the reason changes; the last discovered backends stay. */
  | { readonly kind: "discovery.failed"; readonly from: string; readonly reason: string }
  | { readonly kind: "discovery.recovered"; readonly from: string }
  | { readonly kind: "certificate.loaded"; readonly name: string; readonly notAfter: string }
  /** A backend's certificate was first seen or has changed; `purpose`: "backend" or "backend-loopback". */
  | {
      readonly kind: "certificate.observed";
      readonly backend: string;
      readonly purpose: string;
      readonly notAfter: string;
    }
  | { readonly kind: "certificate.refused"; readonly name: string; readonly problem: string }
  /** A certificate passed a threshold; written once for each. `leftMs` is negative after expiry. */
  | {
      readonly kind: "certificate.expiring";
      readonly purpose: string;
      readonly name: string;
      readonly notAfter: string;
      readonly leftMs: number;
      readonly limitMs: number;
    }
  /** A certificate reported as expiring was replaced in time, or is no longer used (`notAfter` is ""). */
  | {
      readonly kind: "certificate.renewed";
      readonly purpose: string;
      readonly name: string;
      readonly notAfter: string;
    }
  | {
      readonly kind: "internal.error";
      readonly scope: "stream" | "session" | "timer" | "process" | "reader";
      readonly message: string;
    }
  /** "" if all of its checks pass. */
  | { readonly kind: "probe.changed"; readonly probe: string; readonly complaint: string }
  /** Another watchkeeper process starts to take over the listening sockets. */
  | { readonly kind: "successor.started"; readonly pid: number }
  /** The successor serves; this process drains. */
  | { readonly kind: "successor.ready"; readonly pid: number }
  /** The successor does not serve; this process continues. */
  | { readonly kind: "successor.failed"; readonly reason: string }
  /** Watches that moved within one second along the same path. The longest doubt before a move is included. */
  | {
      readonly kind: "watches.moved";
      readonly reason: string;
      readonly from: string;
      readonly to: string;
      readonly count: number;
      readonly slowestMs: number;
    }
  /**
   * Watches that ended within one second for one reason although their clients wanted more events. Includes the
   * resource of the last one and the version from which it would have continued, "" if there is none.
   */
  | {
      readonly kind: "watches.ended";
      readonly reason: string;
      readonly from: string;
      readonly count: number;
      readonly resource: string;
      readonly version: string;
    }
  /**
   * A backend has delivered nothing new of a resource for `behindMs` since others delivered `peersVersion`; its watches
   * of that resource move. Detected by a bookmark of its own, or by a watch that should have delivered it.
   */
  | {
      readonly kind: "cache.stalled";
      readonly backend: string;
      readonly resource: string;
      readonly version: string;
      readonly peersVersion: string;
      readonly behindMs: number;
      readonly detector: "bookmark" | "watch";
      readonly watches: number;
    }
  | {
      readonly kind: "cache.recovered";
      readonly backend: string;
      readonly resource: string;
      readonly version: string;
    }
  /**
   * `lateMs` after a list returned etcd's version, a backend's cache of that resource had not reached it: etcd notifies
   * it rarely, and the list did not trigger a notification. "cache.progress_restored" follows when it has caught up, or
   * when no watch needs it.
   */
  | {
      readonly kind: "cache.progress_delayed";
      readonly backend: string;
      readonly resource: string;
      readonly version: string;
      readonly etcdVersion: string;
      readonly lateMs: number;
    }
  | {
      readonly kind: "cache.progress_restored";
      readonly backend: string;
      readonly resource: string;
      readonly version: string;
      readonly lateMs: number;
    }
  /**
   * A client got a state older than what it had seen of the resource; at most once a minute for each client and
   * resource.
   */
  | {
      readonly kind: "response.stale";
      readonly client: string;
      readonly userAgent: string;
      readonly resource: string;
      readonly backend: string;
      readonly version: string;
      readonly seen: string;
    }
  /** No backend could answer a client from the version that it had seen: it may get older state again. */
  | {
      readonly kind: "stale_read_guard.bypassed";
      readonly client: string;
      readonly userAgent: string;
      readonly resource: string;
      readonly seen: string;
    }
  /** A watch has missed its bookmarks while its upstream connection answers: it is opened on another backend as well. */
  | {
      readonly kind: "watch.hung";
      readonly client: string;
      readonly userAgent: string;
      readonly resource: string;
      readonly backend: string;
      readonly silentMs: number;
      readonly limitMs: number;
    }
  /**
   * A backend sent an event older than one it had sent on the same watch before (incident 001); at most once a minute
   * for each backend and resource.
   */
  | {
      readonly kind: "event.version_regressed";
      readonly client: string;
      readonly userAgent: string;
      readonly resource: string;
      readonly backend: string;
      readonly type: string;
      readonly version: string;
      readonly seen: string;
    }
  /** Callers that had a watch list its resource again: this many of them within a few seconds, for whatever reason. */
  | {
      readonly kind: "relist_storm.detected";
      readonly relists: number;
      readonly limit: number;
      readonly withinMs: number;
      readonly resource: string;
      /** The first few of them. */
      readonly clients: readonly string[];
    }
  /**
   * A leader lease's renewals are suspect. `lease`: resource, namespace and name. `was`: the client that renewed it
   * before, or the pod that should renew it. At most once in a few seconds for each lease and verdict.
   */
  | {
      readonly kind: "lease.suspect";
      readonly verdict: "contested" | "ghost" | "unknown";
      readonly lease: string;
      readonly holder: string;
      readonly client: string;
      readonly subject: string;
      readonly userAgent: string;
      readonly was: string;
      readonly detector: string;
      /** The measurement and its limit, in ms; 0 if there is none. */
      readonly valueMs: number;
      readonly limitMs: number;
      readonly reason: string;
      readonly auditId: string;
    }
  /** Derived from earlier entries; the admin port has its evidence. */
  | {
      readonly kind: "incident.opened";
      readonly id: number;
      readonly incident: string;
      readonly subject: string;
      readonly backend: string;
      readonly severity: string;
      readonly summary: string;
      readonly detectionMs: number;
    }
  | {
      readonly kind: "incident.ended";
      readonly id: number;
      readonly incident: string;
      readonly subject: string;
      readonly backend: string;
      readonly lastedMs: number;
      readonly watchesMoved: number;
      readonly clients: number;
      readonly reason: string;
    }
  /**
   * A client has started the same watch from the same version this many times in a minute; at most once a minute for
   * each watch.
   */
  | {
      readonly kind: "watch.replay_loop";
      readonly client: string;
      readonly userAgent: string;
      readonly resource: string;
      readonly version: string;
      readonly times: number;
    }
  /** An operator has changed something at run time. `by` is the claimed identity and the address. */
  | {
      readonly kind: "operation.done";
      readonly operation: string;
      readonly target: string;
      readonly by: string;
      /** The operator's own text; "" if there is none. */
      readonly reason: string;
      readonly outcome: string;
    }
  /** An operation was requested and not done: it was impossible, or the request came from another origin's page. */
  | {
      readonly kind: "operation.refused";
      readonly operation: string;
      readonly target: string;
      readonly by: string;
      readonly reason: string;
    }
  /** The API rejects all clients because the cluster cannot verify their tokens. Written when the reason changes. */
  | { readonly kind: "review.failed"; readonly review: string; readonly reason: string }
  | { readonly kind: "drain.started" }
  | { readonly kind: "drain.ended"; readonly cut: number };
