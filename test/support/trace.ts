import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { TraceRecord } from "../../src/proxy/observe/request-trace.ts";
import { within } from "./within.ts";

/** Returns the trace record of a request. `change` overrides single values. */
export function traceOf(change: Partial<TraceRecord> = {}): TraceRecord {
  return {
    traceId: "0af7651916cd43dd8448eb211c80319c",
    spanId: "a".repeat(16),
    parentId: "",
    startMs: 1_800_000_000_000,
    endMs: 1_800_000_000_010.5,
    method: "GET",
    path: "/api/v1/pods",
    verb: "LIST",
    auditId: "a-1",
    client: "10.0.0.9",
    userAgent: "kubectl/v1.36.1",
    protocol: "2",
    code: 200,
    end: "complete",
    bytes: 512,
    spans: [],
    droppedSpans: 0,
    ...change,
  };
}

type Collected = { readonly path: string; readonly type: string; readonly body: string };

/** An OTLP collector that keeps what it receives. */
export class Collector {
  readonly collected: Collected[] = [];
  status = 200;
  /** If true, it never answers. */
  isSilent = false;
  readonly #server: Server;
  #onBatch = (): void => {};

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const body = Buffer.concat(chunks).toString("latin1");
        const type = request.headers["content-type"] ?? "";
        this.collected.push({ path: request.url ?? "", type, body });
        if (!this.isSilent) response.writeHead(this.status).end();
        this.#onBatch();
      });
    });
  }

  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1/traces`;
  }

  /** Resolves when the next batch arrives. */
  batch(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onBatch = resolve;
    return within(20_000, "a batch at the collector", promise);
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
