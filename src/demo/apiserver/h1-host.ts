/**
 * HTTP/1.1 for an embedded apiserver, parsed by node:http: watchkeeper's probes request /readyz with it, and curl can
 * too.
 */
import http from "node:http";
import { demoLimits } from "../objects/demo-limits.ts";
import type { Answer, Ask } from "./ask.ts";

/** Serves the sockets that it is given with "connection"; it binds no port. */
export function createH1Host(handle: (ask: Ask, answer: Answer) => void): http.Server {
  return http.createServer({ noDelay: true }, (request, response) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      // One byte beyond the limit is enough to reject the request; the rest is read and dropped.
      if (size <= demoLimits.bodyBytes) chunks.push(chunk);
      size += chunk.length;
    });
    request.on("error", () => {}); // the response's "close" handles it
    request.on("end", () => {
      const { method = "", url: path = "" } = request;
      handle({ method, path, fields: fieldsOf(request), body: Buffer.concat(chunks) }, answerOn(response));
    });
  });
}

function fieldsOf({ rawHeaders }: http.IncomingMessage): (readonly [string, string])[] {
  return Array.from({ length: rawHeaders.length / 2 }, (_, index) => {
    const [name = "", value = ""] = rawHeaders.slice(index * 2, index * 2 + 2);
    return [name.toLowerCase(), value];
  });
}

function answerOn(response: http.ServerResponse): Answer {
  return {
    head(status, fields) {
      response.writeHead(status, fields.flat());
      response.flushHeaders();
    },
    write: (bytes) => void response.write(bytes),
    end: () => void response.end(),
    queued: () => response.writableLength,
    onGone(run) {
      response.on("close", () => {
        if (!response.writableEnded) run();
      });
    },
  };
}
