/** One HTTP/2 client as the measurements need it: it says when the head came, how the answer ended, and dials again. */
import { readFileSync } from "node:fs";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import type { Server } from "../rig/ask.ts";

export type Question = {
  readonly method?: string;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

/**
 * `whole`: END_STREAM, or what Node takes for it: a test that needs certainty checks the body. `headless`: no answer at all.
 * `cut`: it ended after its head, and not by END_STREAM.
 */
export type Ending = "whole" | "headless" | "cut";

export type Heard = {
  readonly status: number;
  readonly body: Buffer;
  readonly ending: Ending;
  /** Why it is not whole, in Node's words. */
  readonly why: string;
  readonly askedAt: number;
  /** Until the head, or until it was known that none comes. */
  readonly headMs: number;
  readonly endedAt: number;
};

export class Client {
  readonly #server: Server;
  readonly #options: { readonly ca: Buffer; readonly servername: string };
  #session: ClientHttp2Session | undefined;

  constructor(server: Server) {
    this.#server = server;
    this.#options = { ca: readFileSync(server.caFile), servername: "kubernetes.default.svc" };
  }

  #current(): ClientHttp2Session {
    const held = this.#session;
    if (held !== undefined && !held.closed && !held.destroyed) return held;
    const session = connect(this.#server.url, this.#options);
    // Windows as large as Go's: the default 64 KB would make a LIST a story of round trips.
    session.on("connect", () => session.setLocalWindowSize(16 * 2 ** 20));
    session.on("error", () => undefined); // its streams tell
    this.#session = session;
    return session;
  }

  /** A stream of its own, for what is read piece by piece. It has an error listener already. */
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

  /** Never rejects: how it went wrong is what is measured. */
  ask(question: Question, timeoutMs = 30_000): Promise<Heard> {
    const askedAt = Date.now();
    const { promise, resolve } = Promise.withResolvers<Heard>();
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
      if (headMs < 0) headMs = endedAt - askedAt;
      resolve({ status, body: Buffer.concat(chunks), ending, why, askedAt, headMs, endedAt });
    });
    return promise;
  }

  /** Which apiserver answers this client just now, by its address: each says its own in the root of the API. */
  async backend(): Promise<string> {
    const { status, body, why } = await this.ask({ path: "/api" });
    const address = /"serverAddress": ?"([^":]+):/.exec(body.toString())?.[1];
    if (address === undefined) throw new Error(`/api did not say who answers: ${status} ${why}`);
    return address;
  }

  /** A quiet watch under way: a proxy that gives newcomers to who has least to do sees clients only by their streams. */
  hold(): void {
    this.open({ path: "/api/v1/namespaces?watch=true&timeoutSeconds=3600" }).resume();
  }

  close(): void {
    this.#session?.destroy();
  }
}

/**
 * As many clients as it takes until each of `addresses` serves at least `each` of them; the proxy, not we, says who
 * goes where. At most four times as many as are wanted.
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
  // Those beyond the number were there to fill the other backend up.
  for (const { client, address } of bound) if (address === "") client.close();
  return bound.filter(({ address }) => address !== "");
}
