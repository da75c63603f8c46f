/** A naive proxy that uses node:http2's own streams, for comparison with a proxy that relays frames. */
import { readFileSync } from "node:fs";
import {
  type ClientHttp2Session,
  connect,
  constants,
  createSecureServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
} from "node:http2";
import type { Place } from "../../peer.ts";

const place = JSON.parse(process.argv[2] ?? "") as Place;
const ca = readFileSync(place.caFile);
const settings = { initialWindowSize: 1 << 20, maxConcurrentStreams: 100 };
const server = createSecureServer({
  cert: readFileSync(place.certFile),
  key: readFileSync(place.keyFile),
  settings,
});

/**
 * Each client session has an upstream session of its own. Sharing one between clients would need a scheduler for the
 * backend's 100 streams, which a naive proxy does not have.
 */
const pools = new WeakMap<ServerHttp2Session, ClientHttp2Session>();

server.on("session", (session) => {
  session.setLocalWindowSize(1 << 24);
  const upstream = connect(`https://localhost:${place.backendPort}`, { ca, settings });
  upstream.on("connect", () => {
    if (!upstream.destroyed) upstream.setLocalWindowSize(1 << 24);
  });
  upstream.on("error", () => session.destroy());
  pools.set(session, upstream);
  session.on("close", () => upstream.destroy());
  session.on("error", () => upstream.destroy());
});

/** Returns the header fields without the library's symbols, which are no fields. */
function fieldsOf(head: IncomingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(head));
}

server.on("stream", (stream, head) => {
  const session = stream.session;
  const upstream = session === undefined ? undefined : pools.get(session as ServerHttp2Session);
  if (upstream === undefined) return;
  const hasBody = head[":method"] !== "GET" && head[":method"] !== "HEAD";
  const request = upstream.request(
    { ...fieldsOf(head), "x-forwarded-for": "127.0.0.1" },
    { endStream: !hasBody },
  );
  if (hasBody) stream.pipe(request);
  request.on("response", (answer) => {
    if (stream.destroyed) return;
    stream.respond(fieldsOf(answer));
    request.pipe(stream);
  });
  request.on("error", () => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
  stream.on("error", () => request.close(constants.NGHTTP2_CANCEL));
  stream.on("aborted", () => request.close(constants.NGHTTP2_CANCEL));
});
server.listen(place.port, "127.0.0.1");
