import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Peer } from "../peer.ts";

export const http2Proxy: Peer = {
  name: "http2-proxy",
  settings:
    "the naive way: node:http2's compat server and http2-proxy's web(); HTTP/1.1 to the backend, as the package does, " +
    "over kept sockets; its backend is bench/go, since nghttpd has no HTTP/1.1",
  isUpstreamH1: true,
  missing: () =>
    existsSync(join(import.meta.dirname, "../../node_modules/http2-proxy")) ? undefined : "npm ci",
  command: (place) => [
    process.execPath,
    join(import.meta.dirname, "programs/http2-proxy.ts"),
    JSON.stringify(place),
  ],
};
