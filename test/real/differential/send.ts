/**
 * Sends one request and returns everything that came back: each header field in its order and as often as it came, 1xx
 * responses, trailers, the body, and how the response ended. An ordinary client would hide differences, because it
 * repairs, merges or drops parts of a response.
 */
import { connect as connectSession } from "node:http2";
import { request } from "node:https";

export type Field = readonly [name: string, value: string];

export type Request = {
  readonly protocol: "h2" | "h1";
  readonly method: string;
  readonly path: string;
  readonly fields: readonly Field[];
  readonly body?: Buffer;
};

export type Reply = {
  /** Status codes of the 1xx responses, in order. */
  readonly early: readonly number[];
  readonly status: number;
  readonly fields: readonly Field[];
  readonly body: Buffer;
  readonly trailers: readonly Field[];
  /** "whole", or why the response is incomplete. */
  readonly ended: string;
};

export type Target = { readonly url: string; readonly ca: Buffer };

/** The :authority or Host of every request, so that no response differs because of it. */
const authority = "kubernetes.default.svc";
const timeoutMs = 5_000;

function fieldsOf(raw: readonly string[]): Field[] {
  const fields: Field[] = [];
  for (let at = 0; at < raw.length; at += 2) fields.push([(raw[at] ?? "").toLowerCase(), raw[at + 1] ?? ""]);
  return fields;
}

function statusOf(fields: readonly Field[]): number {
  return Number(fields.find(([name]) => name === ":status")?.[1]);
}

function withoutStatus(fields: readonly Field[]): Field[] {
  return fields.filter(([name]) => name !== ":status");
}

/**
 * True if the client waits for a 100 response before it sends the body, as curl does. A final response also ends the
 * wait.
 */
function waits(fields: readonly Field[]): boolean {
  return fields.some(([name, value]) => name === "expect" && value === "100-continue");
}

export function send(target: Target, asked: Request): Promise<Reply> {
  return asked.protocol === "h2" ? sendH2(target, asked) : sendH1(target, asked);
}

type Raw = readonly string[];

/**
 * A new session for each request, because an apiserver sends GOAWAY after a 401 and the next request must not be
 * affected.
 */
function sendH2(target: Target, asked: Request): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  // Not strict, because requests with two Authorization fields are tested too.
  const options = { ca: target.ca, servername: "localhost", strictSingleValueFields: false };
  const session = connectSession(target.url, options);
  const pseudo = [":method", asked.method, ":path", asked.path, ":scheme", "https", ":authority", authority];
  const early: number[] = [];
  let fields: Field[] = [];
  let trailers: Field[] = [];
  let ended = "";
  const chunks: Buffer[] = [];
  session.on("error", reject);
  // Fields are passed and returned as flat lists, because Node's object form would merge repeated fields.
  const stream = session.request([...pseudo, ...asked.fields.flat()] as never);
  stream.setTimeout(timeoutMs, () => stream.destroy(new Error(`silent for ${timeoutMs} ms`)));
  stream.on("headers", (_: unknown, __: unknown, raw: Raw) => early.push(statusOf(fieldsOf(raw))));
  stream.on("response", (_: unknown, __: unknown, raw: Raw) => (fields = fieldsOf(raw)));
  stream.on("trailers", (_: unknown, __: unknown, raw: Raw) => (trailers = fieldsOf(raw)));
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  const conclude = (how: string): void => {
    ended ||= how;
    const body = Buffer.concat(chunks);
    resolve({ early, status: statusOf(fields), fields: withoutStatus(fields), body, trailers, ended });
    session.destroy();
  };
  stream.on("error", (error) => conclude(error.message));
  stream.on("close", () => conclude(`reset ${stream.rstCode}`));
  // Not on "close": if the response came before the whole body was sent, Node never closes the stream.
  stream.on("end", () => conclude("whole"));
  if (waits(asked.fields)) {
    stream.on("continue", () => {
      early.push(100);
      stream.end(asked.body);
    });
    stream.on("response", () => stream.end());
  } else stream.end(asked.body);
  return promise;
}

function sendH1(target: Target, asked: Request): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const early: number[] = [];
  const { hostname, port } = new URL(target.url);
  // Node sends a flat list unchanged. From an object, it would merge repeated fields and add Host and Connection.
  const headers = ["Host", authority, ...asked.fields.flat()];
  const length = asked.body?.length ?? 0;
  if (length > 0) headers.push("Content-Length", String(length));
  const { method, path } = asked;
  const options = {
    hostname,
    port,
    method,
    path,
    headers,
    ca: target.ca,
    servername: "localhost",
    agent: false,
  };
  const sent = request({ ...options, timeout: timeoutMs } as object, (reply) => {
    const chunks: Buffer[] = [];
    let ended = "";
    reply.on("data", (chunk: Buffer) => chunks.push(chunk));
    reply.on("end", () => (ended = "whole"));
    reply.on("error", (error) => (ended ||= error.message));
    reply.on("close", () => {
      resolve({
        early,
        status: reply.statusCode ?? 0,
        fields: fieldsOf(reply.rawHeaders),
        body: Buffer.concat(chunks),
        trailers: fieldsOf(reply.rawTrailers),
        ended: ended || "closed",
      });
      sent.destroy();
    });
  });
  sent.on("information", ({ statusCode }) => early.push(statusCode));
  sent.on("error", reject); // no effect once the promise is resolved
  sent.on("timeout", () => sent.destroy(new Error(`silent for ${timeoutMs} ms`)));
  if (waits(asked.fields)) {
    sent.on("continue", () => sent.end(asked.body));
    sent.on("response", () => sent.end());
    sent.flushHeaders();
  } else sent.end(asked.body);
  return promise;
}
