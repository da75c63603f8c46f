/**
 * An HTTP/2 client for measurements. It records when the response head came and how the response ended, and it
 * reconnects.
 */
import { readFileSync } from "node:fs";
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import type { Server } from "../rig/ask.ts";

export type Question = {
  readonly method?: string;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

/**
 * `whole`: the response ended with END_STREAM, or Node reports it so; a test that must be certain checks the body.
 * `headless`: no response head came. `cut`: the response ended after its head, but without END_STREAM.
 */
export type Ending = "whole" | "headless" | "cut";

export type Heard = {
  readonly status: number;
  readonly body: Buffer;
  readonly ending: Ending;
  /** Why the response is not whole, in Node's words. */
  readonly why: string;
  readonly askedAt: number;
  /** Milliseconds from the request to the response head, or to the failure if no head came. */
  readonly headMs: number;
  readonly endedAt: number;
};

export class Client {
  readonly #server: Server;
  readonly #options: { readonly ca: Buffer; readonly servername: string };
  #session: ClientHttp2Session | undefined;
  /** For each session that has received a GOAWAY, the last stream id of the latest one. */
  readonly #lastIds = new WeakMap<ClientHttp2Session, number>();

  constructor(server: Server) {
    this.#server = server;
    this.#options = { ca: readFileSync(server.caFile), servername: "kubernetes.default.svc" };
  }

  #current(): ClientHttp2Session {
    const held = this.#session;
    if (held !== undefined && !held.closed && !held.destroyed) return held;
    const session = connect(this.#server.url, this.#options);
    // The flow-control window is as large as that of Go's client. With the default of 64 KB, the duration of a LIST
    // would depend mainly on round trips.
    session.on("connect", () => session.setLocalWindowSize(16 * 2 ** 20));
    session.on("error", () => undefined); // its streams report the error
    session.on("goaway", (_code, lastId) => this.#lastIds.set(session, lastId));
    this.#session = session;
    return session;
  }

  /** Opens a stream for a response that is read piece by piece. The stream already has an error listener. */
  open({ method = "GET", path, body, headers = {} }: Question): ClientHttp2Stream {
    const fields: Record<string, string> = { ":method": method, ":path": path };
    if (this.#server.token !== undefined) fields["authorization"] = `Bearer ${this.#server.token}`;
    if (body !== undefined) fields["content-type"] = "application/json";
    Object.assign(fields, headers);
    const stream = this.#current().request(fields, { endStream: body === undefined });
    stream.on("error", () => undefined);
    if (body !== undefined) stream.end(JSON.stringify(body));
    return stream;
  }

  /**
   * Sends a request. Never rejects, because a failure is a result to be measured. Sends a request again that the client
   * itself has not sent: nghttp2 ends such requests with REFUSED_STREAM when a GOAWAY comes.
   */
  async ask(question: Question, timeoutMs = 30_000): Promise<Heard> {
    const askedAt = Date.now();
    for (;;) {
      const session = this.#current();
      const { heard, refusedId } = await this.#askOnce(question, askedAt, timeoutMs);
      // A stream that the server has refused has an id above the last stream id of the GOAWAY (RFC 9113 §6.8).
      const isUnsent = refusedId <= (this.#lastIds.get(session) ?? 0);
      if (!isUnsent) return heard;
    }
  }

  /** `refusedId`: id of the stream if it was refused before a response; otherwise infinite. */
  #askOnce(
    question: Question,
    askedAt: number,
    timeoutMs: number,
  ): Promise<{ readonly heard: Heard; readonly refusedId: number }> {
    const { promise, resolve } = Promise.withResolvers<{ heard: Heard; refusedId: number }>();
    const stream = this.open(question);
    const chunks: Buffer[] = [];
    let status = 0;
    let headMs = -1;
    let why = "";
    let hasEnded = false;
    const timer = setTimeout(() => {
      why = `nothing for ${timeoutMs} ms`;
      stream.close(8);
    }, timeoutMs);
    stream.on("response", (head) => {
      status = Number(head[":status"]);
      headMs = Date.now() - askedAt;
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", (error) => (why ||= error.message));
    stream.on("end", () => (hasEnded = true));
    stream.on("close", () => {
      clearTimeout(timer);
      const endedAt = Date.now();
      const isWhole = hasEnded && stream.rstCode === 0 && why === "";
      const ending = headMs < 0 ? "headless" : isWhole ? "whole" : "cut";
      why ||= isWhole ? "" : `reset ${stream.rstCode}`;
      const isRefused = headMs < 0 && stream.rstCode === constants.NGHTTP2_REFUSED_STREAM;
      const refusedId = isRefused ? (stream.id ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
      if (headMs < 0) headMs = endedAt - askedAt;
      const body = Buffer.concat(chunks);
      resolve({ heard: { status, body, ending, why, askedAt, headMs, endedAt }, refusedId });
    });
    return promise;
  }

  /**
   * Returns the address of the apiserver that now serves this client. Each apiserver returns its own address at /api.
   */
  async backend(): Promise<string> {
    const { status, body, why } = await this.ask({ path: "/api" });
    const address = /"serverAddress": ?"([^":]+):/.exec(body.toString())?.[1];
    if (address === undefined) throw new Error(`/api did not say who answers: ${status} ${why}`);
    return address;
  }

  /**
   * Keeps a watch open. A proxy that sends new clients to the backend with the least load counts only clients with open
   * streams.
   */
  hold(): void {
    this.open({ path: "/api/v1/namespaces?watch=true&timeoutSeconds=3600" }).resume();
  }

  close(): void {
    this.#session?.destroy();
  }
}

/**
 * Opens clients until each of `addresses` serves at least `each` of them, because the proxy decides which apiserver
 * serves a client. Throws after four times the required number of clients.
 */
export async function spread(
  server: Server,
  addresses: readonly string[],
  each: number,
): Promise<readonly { readonly client: Client; readonly address: string }[]> {
  const bound: { client: Client; address: string }[] = [];
  const isShort = (address: string): boolean => bound.filter((one) => one.address === address).length < each;
  while (addresses.some(isShort)) {
    if (bound.length >= 4 * each * addresses.length) {
      throw new Error(`${bound.length} clients, and none for ${addresses.filter(isShort).join(", ")}`);
    }
    const client = new Client(server);
    client.hold();
    const address = await client.backend();
    if (isShort(address)) bound.push({ client, address });
    else bound.push({ client, address: "" });
  }
  // Clients beyond the required number only kept the other backend loaded.
  for (const { client, address } of bound) if (address === "") client.close();
  return bound.filter(({ address }) => address !== "");
}
