/** Sends HTTP/1.1 requests on a socket that is already connected, and reads bounded responses. */
import { Agent, type IncomingMessage, type RequestOptions, request } from "node:http";
import type { Socket } from "node:net";
import { healthLimits } from "../limits.ts";

/** Sends one request after the other on its socket. */
export class SocketAgent extends Agent {
  readonly #socket: Socket;
  /** The path below which the apiserver is served; "": at the root. */
  readonly prefix: string;

  constructor(socket: Socket, prefix = "") {
    super({ keepAlive: true, maxSockets: 1 });
    this.#socket = socket;
    this.prefix = prefix;
  }

  override createConnection(): Socket {
    return this.#socket;
  }
}

export type SocketResponse = { readonly status: number; readonly body: string };

/** `fields`: name and value of each additional field. `post`: the body of a POST; default: the request is a GET. */
export type SocketRequest = {
  readonly fields?: readonly (readonly [string, string])[];
  readonly post?: string;
};

/** @throws {Error} as a rejected promise, if no HTTP response comes */
export async function answerOf(
  agent: SocketAgent,
  path: string,
  { fields = [], post }: SocketRequest = {},
): Promise<SocketResponse> {
  const usual = [
    ["host", "backend"],
    ["user-agent", "watchkeeper-probe"],
    ["accept", post === undefined ? "*/*" : "application/json"],
    ...(post === undefined ? [] : [["content-type", "application/json"]]),
    ...(post === undefined ? [] : [["content-length", String(Buffer.byteLength(post))]]),
  ];
  // A flat list of names and values, because a field may occur several times.
  const headers = [...usual, ...fields].flat();
  const options = { agent, path: agent.prefix + path, headers, maxHeaderSize: healthLimits.probeHeadBytes };
  const response = await responseTo({ ...options, method: post === undefined ? "GET" : "POST" }, post);
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > healthLimits.probeBodyBytes) break;
  }
  const body = Buffer.concat(chunks).toString("utf8", 0, healthLimits.probeBodyBytes);
  return { status: response.statusCode ?? 0, body };
}

function responseTo(options: RequestOptions, post: string | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(options, resolve);
    // A server may also answer with an upgrade (101). Node then closes the request without a response and without an
    // error.
    sent.on("error", reject).on("close", () => reject(new Error("no response")));
    sent.end(post);
  });
}
