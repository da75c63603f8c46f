/**
 * Sends one request and keeps all that came back: every field in its order and as often as it came, 1xx answers,
 * trailers, the body, and how it ended. A client that repairs, merges or hides would hide a difference too.
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
  /** 1xx answers, in order. */
  readonly early: readonly number[];
  readonly status: number;
  readonly fields: readonly Field[];
  readonly body: Buffer;
  readonly trailers: readonly Field[];
  /** `whole`, or what cut it short. */
  readonly ended: string;
};

export type Target = { readonly url: string; readonly ca: Buffer };

/** The name every request asks for, so that no answer can differ by it. */
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

/** Waits for a 100 before it sends the body, as curl does; a final answer instead ends the waiting too. */
function waits(fields: readonly Field[]): boolean {
  return fields.some(([name, value]) => name === "expect" && value === "100-continue");
}

export function send(target: Target, asked: Request): Promise<Reply> {
  return asked.protocol === "h2" ? sendH2(target, asked) : sendH1(target, asked);
}

type Raw = readonly string[];

/** A session each: an apiserver says GOAWAY after a 401, and the next request shall not meet it. */
function sendH2(target: Target, asked: Request): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  // Not strict: Authorization twice is a request too.
  const options = { ca: target.ca, servername: "localhost", strictSingleValueFields: false };
  const session = connectSession(target.url, options);
  const pseudo = [":method", asked.method, ":path", asked.path, ":scheme", "https", ":authority", authority];
  const early: number[] = [];
  let fields: Field[] = [];
  let trailers: Field[] = [];
  let ended = "";
  const chunks: Buffer[] = [];
  session.on("error", reject);
  // Raw fields in, raw fields out: the object form would merge what is repeated.
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
  // Not at the close: an answer that came before the body was taken leaves node's stream open for good.
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
  // A flat list is written as it is; the object form would add Host and Connection and merge what is repeated.
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
  sent.on("error", reject); // after a reply has come this is a promise kept: nothing changes
  sent.on("timeout", () => sent.destroy(new Error(`silent for ${timeoutMs} ms`)));
  if (waits(asked.fields)) {
    sent.on("continue", () => sent.end(asked.body));
    sent.on("response", () => sent.end());
    sent.flushHeaders();
  } else sent.end(asked.body);
  return promise;
}
