/**
 * A well-behaved backend for attack tests. The path selects the response:
 * - `?watch` sends an event every 100 ms.
 * - `/hang` gets no response.
 * - `/line/N`, `/deep/N` and `/digits/N` send an event that no apiserver would send.
 * - `/big/N` sends N bytes.
 * - `/fields` returns the fields of the request.
 * - `/long` returns a head of 16 KiB that differs each time.
 * - `/who` returns the client certificate and the fields of the request.
 * - `/moved` redirects to another port.
 * - Every other path gets an immediate response.
 * - An HTTP/1.1 Upgrade becomes an echo, except for `/refused` (refused) and `/hang` (no response). The head of the 101
 *   response repeats the certificate and the fields, except for `/exec/long`.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import http2 from "node:http2";
import type { Duplex } from "node:stream";
import { answerCanary, canaryPath } from "./canary.ts";
import { commonNameOn } from "./front-proxy.ts";
import { testPki } from "./pki.ts";
import type { PlayedTarget } from "./proxy.ts";

const event = `{"type":"MODIFIED","object":{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"}}}\n`;
const block = Buffer.alloc(65_536, "x");

/**
 * `/line/N` sends a line of N MiB that does not end, `/deep/N` N nested brackets, `/digits/N` a version of N digits.
 */
function oddEvent(path: string): Iterable<string> | undefined {
  const [, what = "", size = ""] = /\/(line|deep|digits)\/(\d+)/.exec(path) ?? [];
  if (what === "") return undefined;
  const head = '{"type":"ADDED","object":{"kind":"Pod",';
  const count = Number(size);
  if (what === "deep")
    return [head, '"spec":', "[".repeat(count), "]".repeat(count), ',"metadata":{"resourceVersion":"8"}}}\n'];
  if (what === "digits") return [head, `"metadata":{"resourceVersion":"${"9".repeat(count)}"}}}\n`];
  return endless(head, count);
}

function shownOn(socket: object, fields: readonly string[]): string {
  return JSON.stringify({ certificate: commonNameOn(socket), fields } satisfies Shown);
}

function* endless(head: string, count: number): Iterable<string> {
  yield `${head}"x":"`;
  for (let at = 0; at < count * 16; at += 1) yield "x".repeat(65_536);
}

/** The common name of the client certificate, and the raw fields of the request. */
export type Shown = { readonly certificate: string; readonly fields: readonly string[] };

export class Target implements PlayedTarget {
  readonly name = "target";
  readonly port: number;
  readonly ca: string;
  /** Number of requests, and how many of them were reset. */
  asked = 0;
  resets = 0;
  /** Number of TCP connections accepted. */
  connections = 0;
  /** Number of requests for `/long`. */
  askedLong = 0;
  /** Bytes of `/big` responses that were passed to the HTTP/2 session. */
  sentBytes = 0;
  /** Number of tunnels opened, and the data that arrived after a refused Upgrade. */
  tunnels = 0;
  afterRefusal = "";
  /** The URL to which `/moved` redirects. */
  movedTo = "http://127.0.0.1:1/";
  readonly #paths: string[] = [];
  readonly #server: http2.Http2SecureServer;
  readonly #sessions = new Set<http2.ServerHttp2Session>();

  private constructor(server: http2.Http2SecureServer, port: number, ca: string) {
    this.#server = server;
    this.port = port;
    this.ca = ca;
    server.on("session", (session) => {
      this.#sessions.add(session);
      session.on("close", () => this.#sessions.delete(session));
      session.on("error", () => {});
    });
    server.on("connection", () => {
      this.connections += 1;
    });
    server.on("sessionError", () => {});
    const asked = (
      stream: http2.ServerHttp2Stream,
      headers: http2.IncomingHttpHeaders,
      _flags: number,
      raw: string[],
    ): void => {
      this.asked += 1;
      if (this.#paths.length < 10_000) this.#paths.push(String(headers[":path"]));
      stream.on("error", () => {});
      stream.on("aborted", () => {
        this.resets += 1;
      });
      stream.resume();
      this.#answer(stream, String(headers[":path"]), raw);
    };
    server.on("stream", asked);
    const asked1 = (request: IncomingMessage, response: ServerResponse): void => {
      // HTTP/2 requests are handled by the stream event.
      if (request.httpVersionMajor !== 1) return;
      if (request.url === canaryPath)
        return answerCanary(
          response,
          { name: commonNameOn(request.socket), isValid: true },
          request.rawHeaders,
        );
      this.#paths.push(request.url ?? "");
      response.end("ok");
    };
    const upgrade = (request: IncomingMessage, socket: Duplex): void => this.#upgrade(request, socket);
    server.on("request", asked1);
    server.on("upgrade", upgrade);
  }

  static async start(): Promise<Target> {
    const { authority, serving } = await testPki();
    // The server also accepts the options of HTTP/1.1, but its type does not declare them.
    const http1 = { maxHeaderSize: 1 << 20 };
    const server = http2.createSecureServer({
      ...http1,
      cert: serving.certificate,
      key: serving.key,
      allowHTTP1: true,
      requestCert: true,
      rejectUnauthorized: false,
      maxHeaderListPairs: 5000,
      maxSessionMemory: 1000,
      // Higher than the number of streams that the proxy opens: Node counts a reset stream as open until JavaScript has
      // handled the reset.
      settings: { maxConcurrentStreams: 2000, maxHeaderListSize: 1 << 20 },
    });
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    return new Target(server, port, authority.certificate);
  }

  stop(): void {
    for (const session of this.#sessions) session.destroy();
    this.#server.close();
  }

  /** Returns the number of requests for this path. */
  seen(path: string): number {
    return this.#paths.filter((asked) => asked === path).length;
  }

  #upgrade({ url = "", rawHeaders }: IncomingMessage, socket: Duplex): void {
    this.#paths.push(url);
    socket.on("error", () => {});
    if (url.includes("/hang")) return;
    if (url.includes("/refused")) {
      socket.on("data", (chunk: Buffer) => {
        this.afterRefusal += chunk.toString("latin1");
      });
      socket.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
      return;
    }
    this.tunnels += 1;
    const shown = Buffer.from(shownOn(socket, rawHeaders)).toString("base64");
    const fields = ["Connection: Upgrade", "Upgrade: SPDY/3.1"];
    if (!url.includes("/exec/long")) fields.push(`X-Shown: ${shown}`);
    socket.write(["HTTP/1.1 101 Switching Protocols", ...fields, "", ""].join("\r\n"));
    socket.pipe(socket);
  }

  #answer(stream: http2.ServerHttp2Stream, path: string, raw: readonly string[]): void {
    if (path.includes("/hang")) return;
    const size = /\/big\/(\d+)/.exec(path)?.[1];
    const odd = oddEvent(path);
    if (odd !== undefined) this.#sends(stream, odd);
    else if (path.includes("watch")) this.#watch(stream);
    else if (size !== undefined) this.#big(stream, Number(size));
    else {
      if (path.includes("/long")) this.askedLong += 1;
      const long = path.includes("/long") ? { "x-long": String(this.asked).padEnd(16_000, "-") } : {};
      const status = path.includes("/401") ? 401 : path.includes("/moved") ? 302 : 200;
      const moved = status === 302 ? { location: this.movedTo } : {};
      stream.respond({ ":status": status, "content-type": "application/json", ...long, ...moved });
      if (path.includes("/who")) stream.end(shownOn(stream.session?.socket ?? {}, raw));
      else stream.end(path.includes("/fields") ? JSON.stringify(raw) : path);
    }
  }

  #watch(stream: http2.ServerHttp2Stream): void {
    stream.respond({ ":status": 200, "content-type": "application/json" });
    const timer = setInterval(() => {
      if (!stream.destroyed && stream.writableLength === 0) stream.write(event);
    }, 100);
    stream.on("close", () => clearInterval(timer));
  }

  /** Sends one event, and nothing after it. */
  #sends(stream: http2.ServerHttp2Stream, pieces: Iterable<string>): void {
    stream.respond({ ":status": 200, "content-type": "application/json" });
    const left = pieces[Symbol.iterator]();
    const more = (): void => {
      for (;;) {
        const next = left.next();
        if (next.done === true || stream.destroyed) return;
        if (!stream.write(next.value)) return void stream.once("drain", more);
      }
    };
    more();
  }

  #big(stream: http2.ServerHttp2Stream, size: number): void {
    stream.respond({ ":status": 200, "content-type": "application/octet-stream" });
    let left = size;
    const more = (): void => {
      while (left > 0 && !stream.destroyed) {
        const piece = left < block.length ? block.subarray(0, left) : block;
        left -= piece.length;
        this.sentBytes += piece.length;
        if (!stream.write(piece)) return void stream.once("drain", more);
      }
      stream.end();
    };
    more();
  }
}
