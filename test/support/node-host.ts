/**
 * The embedded apiserver on Node's own HTTP: an independent peer for our client side, and the way to try it without
 * our server side. Works for node:http and, through its compatibility face, node:http2.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Apiserver } from "../../src/demo/apiserver/apiserver.ts";
import { demoLimits } from "../../src/demo/objects/demo-limits.ts";

/** Answers one request with Node's objects. */
export function nodeHost(apiserver: Apiserver): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      if (size <= demoLimits.bodyBytes) chunks.push(chunk);
      size += chunk.length;
    });
    request.on("end", () => {
      const fields = Object.entries(request.headers).map(([name, value]) => [name, String(value)] as const);
      const ask = {
        method: request.method ?? "GET",
        path: request.url ?? "/",
        fields,
        body: Buffer.concat(chunks),
      };
      apiserver.handle(ask, {
        head(status, head) {
          response.writeHead(status, Object.fromEntries(head));
          response.flushHeaders();
        },
        write: (bytes) => response.write(bytes),
        end: () => response.end(),
        queued: () => response.writableLength,
        onGone: (run) => response.on("close", run),
      });
    });
  };
}

/** Plain HTTP/1.1 on a free loopback port; `close` cuts what is open. */
export async function openNodeHost(apiserver: Apiserver): Promise<{ url: string; close: () => void }> {
  const server = createServer(nodeHost(apiserver));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
