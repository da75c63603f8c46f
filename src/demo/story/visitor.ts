/**
 * A client of either proxy with its own address, header fields and server name, on one HTTP/2 session (node:http2). The
 * incident stories use it.
 */
import http2 from "node:http2";
import tls from "node:tls";
import { wallClock } from "../../base/clock.ts";
import { type Json, parseJson } from "../objects/json.ts";

/** A response after this time does not count. */
const patienceMs = 3_000;

export type VisitorOptions = {
  readonly port: number;
  /** PEM: the CA of the proxy. */
  readonly ca: string;
  /** Sent with each request. */
  readonly fields?: Readonly<Record<string, string>>;
  /** The loopback address that it connects from. */
  readonly localAddress?: string;
  /** The requested server name (SNI), which the certificate must contain. */
  readonly serverName?: string;
  /** How long it waits for a response. */
  readonly withinMs?: number;
};

export type OpenWatch = { readonly events: Json[]; end(): Promise<void> };

export class Visitor {
  readonly #session: http2.ClientHttp2Session;
  readonly #options: VisitorOptions;

  constructor(options: VisitorOptions) {
    this.#options = options;
    const { port, ca, localAddress = "127.0.0.1", serverName = "localhost" } = options;
    const where = { host: "127.0.0.1", port, localAddress };
    const how: tls.ConnectionOptions & typeof where = {
      ...where,
      ca,
      servername: serverName,
      ALPNProtocols: ["h2"],
    };
    this.#session = http2.connect(`https://${serverName}:${port}`, {
      createConnection: () => tls.connect(how),
    });
    this.#session.on("error", () => {}); // each request ends by its own "close"
  }

  /** `what` is "METHOD /path"; resolves with the status, 0 without a response. */
  async ask(what: string, body?: object): Promise<number> {
    return (await this.read(what, body)).status;
  }

  /** The same, with the response body. */
  read(what: string, body?: object): Promise<{ readonly status: number; readonly body: Json }> {
    const [method = "", path = ""] = what.split(" ");
    const head = { ":method": method, ":path": path, "content-type": "application/json" };
    const stream = this.#open({ ...head, ...this.#options.fields }, body === undefined);
    let status = 0;
    const chunks: Buffer[] = [];
    const forget = wallClock.after(this.#options.withinMs ?? patienceMs, () => {
      status = 0;
      stream?.close(http2.constants.NGHTTP2_CANCEL);
      this.#session.destroy();
    });
    if (body !== undefined) stream?.end(JSON.stringify(body));
    return new Promise((resolve) => {
      const settle = (): void => {
        forget();
        resolve({ status, body: parseJson(Buffer.concat(chunks).toString()) ?? null });
      };
      if (stream === undefined) return settle();
      stream.on("response", (fields) => {
        status = Number(fields[":status"]);
      });
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("close", settle);
    });
  }

  /** Resolves when the watch is answered or has ended. */
  async watch(path: string): Promise<OpenWatch> {
    const stream = this.#open({ ":path": path, ...this.#options.fields }, true);
    const events: Json[] = [];
    if (stream === undefined) return { events, end: () => Promise.resolve() };
    let rest = "";
    stream.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) events.push(parseJson(line) ?? null);
    });
    const closed = new Promise<void>((resolve) => {
      stream.once("close", () => resolve());
    });
    const answered = new Promise<void>((resolve) => {
      stream.once("response", () => resolve());
    });
    await Promise.race([answered, closed]);
    return {
      events,
      async end() {
        stream.close(http2.constants.NGHTTP2_CANCEL);
        await closed;
      },
    };
  }

  close(): void {
    this.#session.destroy();
  }

  /** Undefined: the session is lost. */
  #open(fields: http2.OutgoingHttpHeaders, endStream: boolean): http2.ClientHttp2Stream | undefined {
    if (this.#session.destroyed || this.#session.closed) return undefined;
    const stream = this.#session.request(fields, { endStream });
    stream.on("error", () => {}); // "close" follows
    return stream;
  }
}
