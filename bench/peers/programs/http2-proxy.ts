/** A naive proxy, built as the http2-proxy package's README shows. */
import { readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import { Agent, type RequestOptions, request } from "node:https";
import proxy from "http2-proxy";
import type { Place } from "../../peer.ts";

const place = JSON.parse(process.argv[2] ?? "") as Place;
const agent = new Agent({ ca: readFileSync(place.caFile), keepAlive: true, servername: "localhost" });
const server = createSecureServer({
  cert: readFileSync(place.certFile),
  key: readFileSync(place.keyFile),
  allowHTTP1: true,
  settings: { initialWindowSize: 1 << 20, maxConcurrentStreams: 100 },
});
server.on("request", (incoming, answer) => {
  const options = {
    hostname: "127.0.0.1",
    port: place.backendPort,
    // Without an agent, the package opens a new connection for every request.
    onReq: async (_: unknown, head: RequestOptions) => request({ ...head, agent }),
  };
  const proxied = proxy.web(incoming, answer, options);
  proxied?.catch(() => answer.destroy());
});
server.listen(place.port, "127.0.0.1");
