import type { Peer } from "../peer.ts";
import { find } from "../tools.ts";

export const nghttpx: Peer = {
  name: "nghttpx",
  settings:
    "1 worker in 1 process; 100 streams; windows 1 MiB a stream and 16 MiB a session (64 KiB would hamper LIST); " +
    "quiet sessions kept for 1 h; X-Forwarded-For added as ours does; no access log by default",
  missing: () => (find("nghttpx") === undefined ? "apt-get install nghttp2-proxy" : undefined),
  command: (place) => [
    find("nghttpx") ?? "",
    "--conf=/dev/null",
    "--single-process",
    "--workers=1",
    "--log-level=ERROR",
    `--frontend=127.0.0.1,${place.port}`,
    `--backend=127.0.0.1,${place.backendPort};;proto=h2;tls;sni=localhost`,
    `--cacert=${place.caFile}`,
    "--add-x-forwarded-for",
    "--frontend-http2-max-concurrent-streams=100",
    "--frontend-http2-window-size=1048575",
    "--frontend-http2-connection-window-size=16777215",
    "--backend-http2-window-size=1048575",
    "--backend-http2-connection-window-size=16777215",
    "--frontend-http2-read-timeout=1h",
    "--stream-read-timeout=0",
    "--stream-write-timeout=0",
    "--backend-read-timeout=1h",
    place.keyFile,
    place.certFile,
  ],
};
