import { type AddressInfo, createServer, type Socket } from "node:net";
import { type Entry, Journal } from "../../src/events/journal.ts";
import { Field } from "../../src/h2/core/field.ts";
import type { StreamListener, StreamWriter } from "../../src/h2/core/stream-writer.ts";
import { createH1, type H1Client } from "../../src/proxy/downstream/h1-connection.ts";
import { Client } from "../../src/upstream/context/client.ts";
import { type ManualClock, manualClock } from "./clock.ts";
import { connectRaw, type RawPeer } from "./raw.ts";

/** Returns an HTTP/1.1 client without credentials. */
export function anyone(): Client {
  return new Client({
    address: "192.0.2.1",
    port: 1,
    listener: "test",
    alpn: "http/1.1",
    isTls: false,
    isTrustedForwarder: false,
  });
}

/**
 * Stands in for the exchange (the state of one request in the proxy): records what the client sent, and responds as the
 * test says.
 */
export class ScriptedExchange implements StreamListener {
  readonly fields: readonly Field[];
  readonly end: boolean;
  readonly side: StreamWriter;
  body = "";
  trailers: string[] = [];
  isEnded = false;
  resetCode: number | undefined;
  sentCount = 0;

  constructor(fields: readonly Field[], end: boolean, side: StreamWriter) {
    this.fields = fields;
    this.end = end;
    this.side = side;
    this.isEnded = end;
  }

  get lines(): string[] {
    return linesOf(this.fields);
  }

  headers(fields: Field[], end: boolean): void {
    this.trailers = linesOf(fields);
    this.isEnded = end;
  }

  data(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    this.body += bytes.toString("latin1", start, end);
    this.isEnded = endStream;
  }

  reset(code: number): void {
    this.resetCode = code;
  }

  sent(count: number): void {
    this.sentCount += count;
  }

  /** Sends a response head, an interim response or trailers, for example `":status 200"` and `"content-length 5"`. */
  answer(lines: readonly string[], end = false): void {
    this.side.sendHeaders(lines.map(fieldOf), end);
  }

  write(text: string, end = false): void {
    const bytes = Buffer.from(text, "latin1");
    this.side.sendData(bytes, 0, bytes.length, end);
  }

  /** Waits until `isTrue` returns true. Throws after 3 s. */
  async until(what: string, isTrue: () => boolean): Promise<void> {
    await until(what, isTrue);
  }
}

export async function until(what: string, isTrue: () => boolean): Promise<void> {
  for (const end = Date.now() + 3000; !isTrue(); ) {
    if (Date.now() > end) throw new Error(`Waited 3 s for ${what}`);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

function fieldOf(line: string): Field {
  const at = line.indexOf(" ");
  return new Field(line.slice(0, at), line.slice(at + 1));
}

export function linesOf(fields: readonly Field[]): string[] {
  return fields.map((field) => `${field.name} ${field.value}`);
}

export type ScriptedH1 = {
  readonly clock: ManualClock;
  readonly entries: Entry[];
  readonly upgrades: { readonly socket: Socket; readonly head: Buffer }[];
  readonly drains: (() => void)[];
  connect(): Promise<RawPeer>;
  /** The clients of the open connections, as the listener knows them. */
  readonly clients: readonly H1Client[];
  /** Resolves with the next exchange that this method has not returned yet. */
  exchange(): Promise<ScriptedExchange>;
  readonly exchanges: ScriptedExchange[];
  /** Called with each new exchange, before all other consumers. */
  onExchange: (exchange: ScriptedExchange) => void;
  close(): void;
};

/** Starts createH1 on a listening socket. Its requests become exchanges that the test answers. */
export async function startH1(): Promise<ScriptedH1> {
  const clock = manualClock();
  const journal = new Journal(clock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const exchanges: ScriptedExchange[] = [];
  let taken = 0;
  const upgrades: { readonly socket: Socket; readonly head: Buffer }[] = [];
  const sockets = new Set<Socket>();
  const drains: (() => void)[] = [];
  const clients: H1Client[] = [];
  const accept = createH1({
    clock,
    journal,
    handle(request, end, side) {
      const exchange = new ScriptedExchange(request.fields, end, side);
      exchanges.push(exchange);
      own.onExchange(exchange);
      return exchange;
    },
    upgrade: (_request, socket, head) => upgrades.push({ socket, head }),
  });
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    const one = accept(socket, anyone());
    clients.push(one);
    drains.push(() => one.drain());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const own: ScriptedH1 = {
    onExchange: () => {},
    clock,
    entries,
    upgrades,
    drains,
    clients,
    exchanges,
    async connect() {
      const peer = await connectRaw(port);
      sockets.add(peer.socket);
      return peer;
    },
    async exchange() {
      await until("a request", () => exchanges.length > taken);
      taken += 1;
      return exchanges[taken - 1] as ScriptedExchange;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
  return own;
}

/** The text of a request head with these extra fields. The caller sends a body, if any, separately. */
export const get = (path: string, ...fields: string[]): string =>
  [`GET ${path} HTTP/1.1`, "Host: api", ...fields, "", ""].join("\r\n");
export const post = (...fields: string[]): string =>
  ["POST /api/v1/pods HTTP/1.1", "Host: api", ...fields, "", ""].join("\r\n");
