/**
 * A relay in front of a real apiserver. It sends DELETED events with the version that the object had while it existed,
 * as apiservers of 2018 did (kubernetes#58545); today's apiservers send the version of the deletion. Everything else
 * passes unchanged. It accepts HTTP/2 and HTTP/1.1, and uses HTTP/1.1 to the apiserver.
 */
import http2, { type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import https from "node:https";
import type { AddressInfo } from "node:net";
import type { DemoBackend } from "../../../demo/story/files.ts";
import type { Pair } from "../../../src/ops/pki/pki.ts";

type Order = { readonly backend: DemoBackend; readonly ca: string; readonly pair: Pair };

type WatchEvent = {
  readonly type: string;
  readonly object: { readonly metadata?: { readonly uid?: string; resourceVersion?: string } };
};

/** Header fields that exist only in HTTP/1.1, or that apply to one hop. */
const ofOneHop = new Set(["connection", "keep-alive", "transfer-encoding", "host", "upgrade"]);

export class OldVersions {
  /** The relay's address, under the apiserver's name. */
  readonly backend: DemoBackend;
  readonly #server: http2.Http2SecureServer;
  readonly #sessions = new Set<http2.ServerHttp2Session>();

  private constructor(server: http2.Http2SecureServer, { backend }: Order) {
    this.#server = server;
    const { port } = server.address() as AddressInfo;
    this.backend = { name: backend.name, host: "127.0.0.1", port };
    server.on("session", (session) => {
      this.#sessions.add(session);
      session.on("error", () => {}); // "close" follows
      session.on("close", () => this.#sessions.delete(session));
    });
  }

  static async start(order: Order): Promise<OldVersions> {
    const { certificate, key } = order.pair;
    const server = http2.createSecureServer({ cert: certificate, key, allowHTTP1: true });
    // The last version of each object before its deletion, by uid. The map is shared by all watches, because a watch
    // may begin after that version was sent.
    const lived = new Map<string, string>();
    server.on("request", (request, response) => pass(order, lived, { request, response }));
    await new Promise<void>((done) => {
      server.listen(0, "127.0.0.1", done);
    });
    return new OldVersions(server, order);
  }

  stop(): void {
    this.#server.close();
    for (const session of this.#sessions) session.destroy();
  }
}

type Exchange = { readonly request: Http2ServerRequest; readonly response: Http2ServerResponse };

function pass({ backend, ca }: Order, lived: Map<string, string>, { request, response }: Exchange): void {
  const { host, port } = backend;
  const isWatch = /[?&]watch=/.test(request.url);
  const headers = Object.fromEntries(
    Object.entries(request.headers).filter(([name]) => !name.startsWith(":") && !ofOneHop.has(name)),
  );
  const options = { host, port, ca, method: request.method, path: request.url, headers, agent: false };
  const asked = https.request({ ...options, servername: "kubernetes.default.svc" }, (answer) => {
    const fields = Object.entries(answer.headers).filter(([name]) => !ofOneHop.has(name));
    response.writeHead(answer.statusCode ?? 502, Object.fromEntries(fields));
    let rest = "";
    answer.on("data", (chunk: Buffer) => {
      if (!isWatch) {
        response.write(chunk);
        return;
      }
      const lines = (rest + chunk.toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) response.write(`${aged(line, lived)}\n`);
    });
    answer.on("close", () => response.end(rest));
  });
  asked.on("error", () => {
    if (request.httpVersionMajor === 1) request.socket.destroy();
    else response.stream.close();
  });
  request.pipe(asked);
  // The client has disconnected, or has received the whole response.
  response.on("close", () => asked.destroy());
}

/** Returns the line of one JSON watch event, with the older version if it is a DELETED event. */
function aged(line: string, lived: Map<string, string>): string {
  const event = JSON.parse(line) as WatchEvent;
  const { uid, resourceVersion } = event.object.metadata ?? {};
  if (uid === undefined || resourceVersion === undefined) return line;
  if (event.type !== "DELETED") lived.set(uid, resourceVersion);
  const old = lived.get(uid);
  if (event.type !== "DELETED" || old === undefined) return line;
  return JSON.stringify({
    ...event,
    object: { ...event.object, metadata: { ...event.object.metadata, resourceVersion: old } },
  });
}
