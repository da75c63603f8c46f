/**
 * A server in a pod that returns the request it received, or responds in one of many other ways. Through the
 * apiserver's `pods/proxy`, a test sees the request that arrived behind the proxy, which an apiserver itself never
 * shows.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

type Answer = (request: IncomingMessage, reply: ServerResponse, argument: string) => void;

const answers: Record<string, Answer> = {
  /** Returns the method, the path, every header field as received, and the length and text of the body. */
  echo: (request, reply) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks);
      const { method, url, rawHeaders, rawTrailers } = request;
      const text = body.length < 2_000 ? body.toString() : "";
      reply.setHeader("content-type", "application/json");
      reply.end(JSON.stringify({ method, url, rawHeaders, rawTrailers, length: body.length, text }));
    });
  },
  status: (_, reply, code) => {
    reply.statusCode = Number(code);
    reply.end(reply.statusCode === 204 || reply.statusCode === 304 ? undefined : `status ${code}`);
  },
  bytes: (_, reply, count) => reply.end(Buffer.alloc(Number(count), "0123456789abcdef")),
  /** Sends no content-length, and one chunk at a time. */
  chunks: (_, reply, count) => {
    let left = Number(count);
    const next = (): void => {
      if (left-- === 0) reply.end();
      else reply.write(`chunk ${left}\n`, () => setTimeout(next, 5));
    };
    next();
  },
  repeated: (_, reply) => {
    reply.setHeader("set-cookie", ["a=1; Path=/", "b=2; Path=/", "a=3"]);
    reply.setHeader("x-many", ["one", "two", "two", ""]);
    reply.end("repeated");
  },
  trailers: (request, reply) => {
    if (request.method === "HEAD") {
      reply.end(); // a response to HEAD has neither body nor trailers
      return;
    }
    // Only one name, repeated: Go's reverse proxy keeps trailers in a map, so two names would arrive in random order.
    reply.setHeader("trailer", "x-twice");
    reply.write("before the trailers");
    reply.addTrailers([
      ["x-twice", "one"],
      ["x-twice", "two"],
    ]);
    reply.end();
  },
  empty: (_, reply) => reply.end(),
  hints: (_, reply) => {
    reply.writeEarlyHints({ link: "</style.css>; rel=preload; as=style" });
    reply.end("after the hints");
  },
  /** Responds before it has read the request's body, and never reads it. */
  early: (_, reply) => {
    reply.statusCode = 403;
    reply.end("no need to read on");
  },
};

export function startEcho(port: number, address: string): Server {
  return createServer((request, reply) => {
    const [, name = "", argument = ""] = /^\/(\w*)\/?([^?/]*)/.exec(request.url ?? "") ?? [];
    const answer = Object.hasOwn(answers, name) ? answers[name] : answers["echo"];
    // Without this field, Go would guess the content type from the first bytes that happen to have arrived.
    reply.setHeader("content-type", "text/plain");
    answer?.(request, reply, argument);
  }).listen(port, address);
}
