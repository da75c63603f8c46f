/**
 * A Kubernetes client of either proxy on one HTTP/2 session (node:http2): its address, header fields and server name can
 * be chosen. The session is not opened again.
 */
import http2 from "node:http2";
import tls from "node:tls";
import { wallClock } from "../../base/clock.ts";
import { type Json, parseJson } from "../objects/json.ts";

export type DemoClientOptions = {
  readonly port: number;
  /** PEM: the CA of the proxy. */
  readonly ca: string;
  /** Sent with each request. */
  readonly fields?: Readonly<Record<string, string>>;
  /** The loopback address that it connects from. */
  readonly localAddress?: string;
  /** The requested server name (SNI), which the certificate must contain. */
  readonly serverName?: string;
  /** A response after this time does not count. */
  readonly withinMs?: number;
};

/** Status 0: there was no response, for the reason in `problem`. */
export type Reply = { readonly status: number; readonly body: Json; readonly problem: string };

/** Callbacks of a watch: one for each event, and one for its end, clean or not. */
export type Watcher = {
  readonly event: (event: Json) => void;
  readonly ended: (isClean: boolean) => void;
};

export type OpenWatch = { readonly events: Json[]; end(): Promise<void> };

export class DemoClient {
  readonly #session: http2.ClientHttp2Session;
  readonly #options: DemoClientOptions;

  constructor(options: DemoClientOptions) {
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

  /** False once the session is lost. */
  get isOpen(): boolean {
    return !this.#session.destroyed && !this.#session.closed;
  }

  /** `what` is "METHOD /path"; resolves with the status, 0 without a response. */
  async ask(what: string, body?: object): Promise<number> {
    return (await this.read(what, body)).status;
  }

  /** The same, with the response body. A request without a response in time is cancelled. */
  read(what: string, body?: object, contentType = "application/json"): Promise<Reply> {
    const [method = "", path = ""] = what.split(" ");
    const stream = this.#open(
      { ":method": method, ":path": path, "content-type": contentType },
      body === undefined,
    );
    if (stream === undefined) return Promise.resolve(without("The connection was lost"));
    if (body !== undefined) stream.end(JSON.stringify(body));
    let status = 0;
    const chunks: Buffer[] = [];
    const { withinMs = 3_000 } = this.#options;
    return new Promise((resolve) => {
      const cancel = wallClock.after(withinMs, () => {
        resolve(without(`No answer within ${withinMs} ms`));
        stream.close(http2.constants.NGHTTP2_CANCEL);
      });
      stream.on("response", (fields) => {
        status = Number(fields[":status"]);
      });
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("close", () => {
        cancel();
        const { rstCode } = stream;
        if (rstCode !== 0) return resolve(without(`Stream reset with code ${rstCode}`));
        resolve({ status, body: parseJson(Buffer.concat(chunks).toString()) ?? null, problem: "" });
      });
    });
  }

  /**
   * Follows a watch; resolves when it is answered or has ended. Without a watcher its events are kept. A response other
   * than 200 has no events and no clean end.
   */
  async watch(path: string, watcher?: Watcher): Promise<OpenWatch> {
    const events: Json[] = [];
    const { event, ended }: Watcher = watcher ?? { event: (one) => void events.push(one), ended: () => {} };
    const stream = this.#open({ ":path": path }, true);
    if (stream === undefined) {
      ended(false);
      return { events, end: () => Promise.resolve() };
    }
    let isWatch = false;
    let partial = "";
    const answered = new Promise<void>((resolve) => {
      stream.once("response", (fields) => {
        isWatch = fields[":status"] === 200;
        resolve();
      });
    });
    stream.setEncoding("utf8");
    stream.on("data", (text: string) => {
      if (!isWatch) return;
      const lines = (partial + text).split("\n");
      partial = lines.pop() ?? "";
      for (const line of lines) event(parseJson(line) ?? null);
    });
    const closed = new Promise<void>((resolve) => {
      stream.once("close", () => {
        ended(isWatch && stream.rstCode === 0);
        resolve();
      });
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
    // With an error, so that no open stream looks complete.
    this.#session.destroy(new Error("Closed by this client"));
  }

  /** Undefined: the session is lost. */
  #open(head: http2.OutgoingHttpHeaders, endStream: boolean): http2.ClientHttp2Stream | undefined {
    if (!this.isOpen) return undefined;
    const stream = this.#session.request({ ...head, ...this.#options.fields }, { endStream });
    stream.on("error", () => {}); // "close" follows
    return stream;
  }
}

function without(problem: string): Reply {
  return { status: 0, body: null, problem };
}
