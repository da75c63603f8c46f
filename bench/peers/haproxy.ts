import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Peer } from "../peer.ts";
import { find } from "../tools.ts";

export const haproxy: Peer = {
  name: "haproxy",
  settings:
    "1 thread; http-reuse always (the default, safe, keeps a session for its first client); 100 streams; windows 1 MiB; " +
    "server certificate verified; X-Forwarded-For added as ours does; no logs",
  missing: () => (find("haproxy") === undefined ? "apt-get install haproxy" : undefined),
  command(place) {
    const pem = join(place.dir, "both.pem");
    writeFileSync(pem, readFileSync(place.certFile, "utf8") + readFileSync(place.keyFile, "utf8"));
    const file = join(place.dir, "haproxy.cfg");
    writeFileSync(
      file,
      `global
  nbthread 1
  maxconn 8000
  tune.h2.initial-window-size 1048576
  tune.h2.max-concurrent-streams 100
defaults
  mode http
  maxconn 8000
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  option forwardfor
frontend front
  bind 127.0.0.1:${place.port} ssl crt ${pem} alpn h2,http/1.1
  default_backend back
backend back
  http-reuse always
  server one 127.0.0.1:${place.backendPort} ssl verify required ca-file ${place.caFile} sni str(localhost) alpn h2
`,
    );
    return [find("haproxy") ?? "", "-q", "-db", "-f", file];
  },
  passthrough: {
    name: "haproxy",
    settings: "1 thread; mode tcp; no logs",
    missing: () => haproxy.missing(),
    command({ dir, port, backendPort }) {
      const file = join(dir, "haproxy.cfg");
      writeFileSync(file, passthroughConfig(port, backendPort));
      return [find("haproxy") ?? "", "-q", "-db", "-f", file];
    },
  },
};

/** Only relays TCP: it neither terminates TLS nor reads SNI. */
export function passthroughConfig(port: number, backendPort: number): string {
  return `global
  nbthread 1
  maxconn 8000
defaults
  mode tcp
  maxconn 8000
  timeout connect 5s
  timeout client 1h
  timeout server 1h
frontend front
  bind 127.0.0.1:${port}
  default_backend back
backend back
  server one 127.0.0.1:${backendPort}
`;
}
