/** Serves an embedded apiserver over TLS, with Node's own implementations of HTTP/2 and HTTP/1.1. */
import http from "node:http";
import http2 from "node:http2";
import tls from "node:tls";
import { wallClock } from "../../src/base/clock.ts";
import type { Failure } from "../../src/base/failure.ts";
import type { Pair } from "../../src/ops/pki/pki.ts";
import type { Apiserver } from "./apiserver.ts";
import { type Answer, type Ask, bodyBytes } from "./ask.ts";
import { bindLoopback } from "./loopback-server.ts";

/** Maximum number of streams on a connection, as in kube-apiserver (k8s.io/apiserver pkg/server/secure_serving.go). */
const maxConcurrentStreams = 100;
/** Milliseconds from the end of the watches until the sockets are closed, so that clients receive each watch's end. */
const flushMs = 50;

export type HostOptions = Pair & {
  readonly apiserver: Pick<Apiserver, "handle" | "endWatches">;
  /** Certificate for clients that request the loopback server name (incident 003); default: none. */
  readonly loopback?: Pair;
};

export class Host {
  readonly #server: http2.Http2SecureServer;
  readonly #apiserver: HostOptions["apiserver"];
  readonly #sockets = new Set<tls.TLSSocket>();

  constructor({ apiserver, certificate, key, loopback }: HostOptions) {
    this.#apiserver = apiserver;
    const own = loopback && tls.createSecureContext({ cert: loopback.certificate, key: loopback.key });
    this.#server = http2.createSecureServer(
      {
        cert: certificate,
        key,
        allowHTTP1: true,
        settings: { maxConcurrentStreams },
        SNICallback: (name, done) => done(null, name === "apiserver-loopback-client" ? own : undefined),
      },
      (request, response) => handleWhenComplete(request, (ask) => apiserver.handle(ask, answerOn(response))),
    );
    this.#server.on("secureConnection", (socket: tls.TLSSocket) => {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    // Ignores the error of a client that closes its socket during the handshake.
    this.#server.on("tlsClientError", () => {});
  }

  start(port = 0): Promise<number | Failure> {
    return bindLoopback(this.#server, port);
  }

  /** Ends each watch cleanly, after a complete event. Then closes all sockets. */
  stop(): void {
    this.#server.close();
    this.#apiserver.endWatches();
    wallClock.after(flushMs, () => {
      for (const socket of this.#sockets) socket.destroy();
    });
  }
}

function handleWhenComplete(request: http2.Http2ServerRequest, handle: (ask: Ask) => void): void {
  const { method, url: path, rawHeaders } = request;
  const chunks: Buffer[] = [];
  let size = 0;
  request.on("data", (chunk: Buffer) => {
    // The chunk that exceeds the limit is kept, so that the apiserver sees that the body is too long and rejects the
    // request. Later chunks are dropped.
    if (size <= bodyBytes) chunks.push(chunk);
    size += chunk.length;
  });
  request.on("error", () => {}); // Ignored, because the response's "close" follows.
  request.on("end", () => {
    const fields = Array.from({ length: rawHeaders.length / 2 }, (_, index) => {
      const [name = "", value = ""] = rawHeaders.slice(index * 2, index * 2 + 2);
      return [name.toLowerCase(), value] as const;
    });
    handle({ method, path, fields, body: Buffer.concat(chunks) });
  });
}

function answerOn(response: http2.Http2ServerResponse): Answer {
  return {
    head(status, fields) {
      for (const [name, value] of fields) response.setHeader(name, value);
      response.writeHead(status);
      if (response instanceof http.ServerResponse) response.flushHeaders();
    },
    write: (bytes) => void response.write(bytes),
    end: () => void response.end(),
    queued: () => response.writableLength,
    onGone(run) {
      response.on("close", () => {
        if (!response.writableEnded) run();
      });
    },
  };
}
