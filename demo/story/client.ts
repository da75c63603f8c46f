/**
 * A Kubernetes client of watchkeeper or the naive proxy, with one HTTP/2 session (node:http2). It never reconnects. If
 * the session is lost, its requests fail.
 */
import http2 from "node:http2";
import tls from "node:tls";
import { wallClock } from "../../src/base/clock.ts";
import { type Json, parseJson } from "../objects/json.ts";

export type DemoClientOptions = {
  readonly port: number;
  /** CA that verifies the proxy, in PEM. */
  readonly ca: string;
  /** Header fields that are added to each request; default: none. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Loopback address from which the client connects; default: 127.0.0.1. */
  readonly localAddress?: string;
  /** Server name (SNI) that the client requests and verifies; default: localhost. */
  readonly serverName?: string;
  /** Timeout of a request in milliseconds; default: 3,000. */
  readonly withinMs?: number;
};

/** A response. `status` 0: there was none, and `problem` says why. */
export type Reply = { readonly status: number; readonly body: Json; readonly problem: string };

/** Callbacks of a watch: for each event, and for the end. `isClean`: false if the watch was cut off. */
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
      rejectUnauthorized: true,
      servername: serverName,
      ALPNProtocols: ["h2"],
    };
    this.#session = http2.connect(`https://${serverName}:${port}`, {
      createConnection: () => tls.connect(how),
    });
    this.#session.on("error", () => {}); // Ignored, because each open request gets a "close" of its own.
  }

  get isOpen(): boolean {
    return !this.#session.destroyed && !this.#session.closed;
  }

  /** Sends a request. Resolves with the status; 0: no response. `what`: "METHOD /path". */
  async ask(what: string, body?: object): Promise<number> {
    return (await this.read(what, body)).status;
  }

  /**
   * Sends a request. Resolves with the response. If none arrives in time, resolves with status 0 and a description of
   * the problem.
   */
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
   * Opens a watch. Resolves when the response has begun or the watch has ended. If there is no watcher, the events are
   * collected in the result's `events`. A response with a status other than 200 has no events, and counts as a watch
   * that was cut off.
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
    // Destroys the session with an error, so that no open stream appears to be complete.
    this.#session.destroy(new Error("Closed by this client"));
  }

  #open(head: http2.OutgoingHttpHeaders, endStream: boolean): http2.ClientHttp2Stream | undefined {
    if (!this.isOpen) return undefined;
    const stream = this.#session.request({ ...head, ...this.#options.fields }, { endStream });
    stream.on("error", () => {}); // Ignored, because "close" follows.
    return stream;
  }
}

function without(problem: string): Reply {
  return { status: 0, body: null, problem };
}
