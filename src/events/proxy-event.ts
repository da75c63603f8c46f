/** All that the journal may tell. Names are `subject.past-tense`; the list is closed and grows with the product. */
export type ProxyEvent =
  | { readonly kind: "listener.opened"; readonly listener: string; readonly address: string }
  /** It takes no new clients; told once, and "listener.opened" when it has its port again. */
  | { readonly kind: "listener.lost"; readonly listener: string; readonly reason: string }
  | {
      readonly kind: "backend.changed";
      readonly backend: string;
      readonly from: string;
      readonly to: string;
      /** What saw it, what was measured and the bound it passed (0: nothing of the kind), and a sentence. */
      readonly detector: string;
      readonly valueMs: number;
      readonly limitMs: number;
      readonly reason: string;
    }
  /** A reload has brought a cluster, or has taken one away: nothing of it is here any more. */
  | { readonly kind: "cluster.added" }
  | { readonly kind: "cluster.removed" }
  /** It is configured, or was found; nothing is known of it yet. */
  | { readonly kind: "backend.added"; readonly backend: string }
  /** It is configured, or found, no more. */
  | { readonly kind: "backend.removed"; readonly backend: string }
  /**
   * What a fresh socket met while the backend is not ready, when that is not what the one before met. `reached` is how far
   * it came: "tcp" says that a kernel took it, and only the process said nothing; "" that nobody did.
   */
  | {
      readonly kind: "backend.probed";
      readonly backend: string;
      readonly met: string;
      readonly reached: "" | "tcp" | "tls";
      readonly ms: number;
      readonly reason: string;
    }
  | { readonly kind: "upstream_connection.opened"; readonly backend: string; readonly lane: string }
  | {
      readonly kind: "upstream_connection.closed";
      readonly backend: string;
      readonly lane: string;
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
      /** Who asked, and who was asked last, as far as that is known. */
      readonly client?: string;
      readonly userAgent?: string;
      readonly backend?: string;
    }
  /** A request is over; told as far as `logging.accessLog` asks for it. */
  | {
      readonly kind: "request.ended";
      readonly client: string;
      readonly agent: string;
      /** Who it says that it is. */
      readonly subject: string;
      readonly verb: string;
      /** Without its query. */
      readonly path: string;
      /** Of a watch. */
      readonly resource: string;
      /** Who answered, or was asked last. */
      readonly backend: string;
      /** 0: nobody answered. */
      readonly code: number;
      readonly end: string;
      /** Of the answer. */
      readonly bytes: number;
      /** Of a watch: events passed on, the version from which it would have gone on, how often it went elsewhere. */
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
      /** Of a watch over a websocket. */
      readonly events?: number;
    }
  /** A connection whose TLS was left to the backend is over; `sent` and `received` are octets, as the client sees them. */
  | {
      readonly kind: "passthrough.ended";
      readonly client: string;
      readonly listener: string;
      readonly backend: string;
      /** "" when the client named none. */
      readonly serverName: string;
      readonly reason: string;
      readonly durationMs: number;
      readonly sent: number;
      readonly received: number;
    }
  /** It never reached a backend. */
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
      /** Changed parts that hold from the next start only. */
      readonly waiting: readonly string[];
    }
  | { readonly kind: "config.refused"; readonly file: string; readonly problems: readonly string[] }
  | {
      readonly kind: "discovery.changed";
      readonly from: string;
      readonly added: readonly string[];
      readonly removed: readonly string[];
    }
  /** Listed no more, as after an outage of etcd, and kept for a while since they answer. */
  | { readonly kind: "discovery.backends_retained"; readonly from: string; readonly names: readonly string[] }
  /** Told when it begins and when its reason changes; the backends found last stay. */
  | { readonly kind: "discovery.failed"; readonly from: string; readonly reason: string }
  | { readonly kind: "discovery.recovered"; readonly from: string }
  | { readonly kind: "certificate.loaded"; readonly name: string; readonly notAfter: string }
  /** Of a backend, when it is first seen and when it changes; `purpose`: "backend" or "backend-loopback". */
  | {
      readonly kind: "certificate.observed";
      readonly backend: string;
      readonly purpose: string;
      readonly notAfter: string;
    }
  | { readonly kind: "certificate.refused"; readonly name: string; readonly problem: string }
  /** It has passed a threshold; told once for each. `leftMs` is negative when it is over. */
  | {
      readonly kind: "certificate.expiring";
      readonly purpose: string;
      readonly name: string;
      readonly notAfter: string;
      readonly leftMs: number;
      readonly limitMs: number;
    }
  /** One that was told to expire was replaced in time, or is used no more ("" for `notAfter`). */
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
  /** "" when all of its checks are good. */
  | { readonly kind: "probe.changed"; readonly probe: string; readonly complaint: string }
  /** Another process of ours comes up to take the listening sockets over. */
  | { readonly kind: "successor.started"; readonly pid: number }
  /** It serves; this one drains. */
  | { readonly kind: "successor.ready"; readonly pid: number }
  /** It does not; this one serves on. */
  | { readonly kind: "successor.failed"; readonly reason: string }
  /** Watches that went on elsewhere within a second, all the same way; the slowest was in doubt for so long. */
  | {
      readonly kind: "watches.moved";
      readonly reason: string;
      readonly from: string;
      readonly to: string;
      readonly count: number;
      readonly slowestMs: number;
    }
  /**
   * Watches that ended within a second although their clients wanted more of them, for one reason. Of the last of them:
   * its resource, and the version from which it would have gone on, "" when there was none.
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
   * A backend shows nothing new of a resource for `behindMs` since others have shown `peersVersion`; its watches of that
   * go elsewhere. Told by a bookmark of its own, or by a watch that would have shown it.
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
   * `lateMs` after a list had said etcd's version, a backend's cache of that resource had still not come to it: etcd
   * notifies it rarely, and the list did not make it ask. "cache.progress_restored" when it has, or when no watch needs it.
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
  /** A client was given a state from before what it had seen of the resource; at most once a minute for each. */
  | {
      readonly kind: "response.stale";
      readonly client: string;
      readonly userAgent: string;
      readonly resource: string;
      readonly backend: string;
      readonly version: string;
      readonly seen: string;
    }
  /** Nobody could answer a client from what it had seen on: it may be shown anything again. */
  | {
      readonly kind: "stale_read_guard.bypassed";
      readonly client: string;
      readonly userAgent: string;
      readonly resource: string;
      readonly seen: string;
    }
  /** A watch has missed its bookmarks while its upstream connection answers: another backend is asked as well. */
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
   * A backend showed an event that is older than what it had shown on the same watch before (incident 001); at most once
   * a minute for each backend and resource.
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
  /** Callers that had a watch and list its resource again: so many of them within a few seconds, for whatever reason. */
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
   * Who renews a leader lock is not as it should be. `lock`: resource, namespace and name. `was`: the client that renewed
   * it before, or the pod that it should be. At most once in a few seconds for each lock and verdict.
   */
  | {
      readonly kind: "lease.suspect";
      readonly verdict: "contested" | "ghost" | "unknown";
      readonly lock: string;
      readonly holder: string;
      readonly client: string;
      readonly subject: string;
      readonly userAgent: string;
      readonly was: string;
      readonly detector: string;
      /** What was measured and its bound, in ms; 0 where nothing of the kind was. */
      readonly valueMs: number;
      readonly limitMs: number;
      readonly reason: string;
      readonly auditId: string;
    }
  /** Found from the entries before it; the admin port has its evidence. */
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
  /** A client has asked for one watch from one version so many times in a minute; at most once a minute for each. */
  | {
      readonly kind: "watch.replay_loop";
      readonly client: string;
      readonly userAgent: string;
      readonly resource: string;
      readonly version: string;
      readonly times: number;
    }
  /** An operator has changed something while it runs. `by` is who says to have done so, and from where. */
  | {
      readonly kind: "operation.done";
      readonly operation: string;
      readonly target: string;
      readonly by: string;
      /** In the operator's own words; "" for none. */
      readonly reason: string;
      readonly outcome: string;
    }
  /** Asked for, and not done: it was not possible, or came from a page of somebody else's. */
  | {
      readonly kind: "operation.refused";
      readonly operation: string;
      readonly target: string;
      readonly by: string;
      readonly reason: string;
    }
  /** Nobody may use the API: the cluster did not say who asks. Told when its reason changes. */
  | { readonly kind: "review.failed"; readonly review: string; readonly reason: string }
  | { readonly kind: "drain.started" }
  | { readonly kind: "drain.ended"; readonly cut: number };
