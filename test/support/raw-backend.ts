/**
 * A TLS backend that sends arbitrary frames. It answers health probes, which use HTTP/1.1, so that it becomes ready.
 * HTTP/2 requests get the frames that the test chooses, valid or not.
 */
import tls from "node:tls";
import { HpackDecoder } from "../../src/h2/hpack/hpack-decoder.ts";
import {
  type Frame,
  joined,
  parse,
  pong,
  preface,
  raw,
  settings,
  settingsAck,
  shown,
  wire,
} from "./h2-frames.ts";
import { testPki } from "./pki.ts";
import type { PlayedTarget } from "./proxy.ts";

export type Asked = {
  readonly id: number;
  /** The request as one line: `HEADERS 1 :method=GET …`. */
  readonly line: string;
  readonly socket: tls.TLSSocket;
  say(...frames: readonly (Frame | Frame[])[]): void;
};

export class RawBackend implements PlayedTarget {
  readonly name = "hostile";
  readonly port: number;
  readonly ca: string;
  readonly #server: tls.Server;
  readonly #sockets = new Set<tls.TLSSocket>();
  /** Called for each HTTP/2 request. */
  play: (asked: Asked) => void = () => {};
  /** The first frames on each connection. */
  greeting: readonly Frame[] = [settings()];
  /** If false, it closes each connection at once, so that the proxy binds no client to it. */
  isListening: boolean;
  sockets = 0;

  private constructor(server: tls.Server, port: number, ca: string, isListening: boolean) {
    this.#server = server;
    this.isListening = isListening;
    this.port = port;
    this.ca = ca;
    server.on("secureConnection", (socket) => this.#serve(socket));
  }

  static async start({ isListening = true } = {}): Promise<RawBackend> {
    const { authority, serving } = await testPki();
    const server = tls.createServer({
      cert: serving.certificate,
      key: serving.key,
      ALPNProtocols: ["h2", "http/1.1"],
    });
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    const address = server.address();
    return new RawBackend(
      server,
      typeof address === "object" && address !== null ? address.port : 0,
      authority.certificate,
      isListening,
    );
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #serve(socket: tls.TLSSocket): void {
    if (!this.isListening) {
      socket.destroy();
      return;
    }
    this.sockets += 1;
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
    if (socket.alpnProtocol !== "h2") {
      socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
      return;
    }
    const decoder = new HpackDecoder();
    let bytes = Buffer.alloc(0);
    let left = preface.length;
    const say = (...frames: readonly (Frame | Frame[])[]): void => {
      if (!socket.destroyed) socket.write(wire(...frames.flat()));
    };
    say([...this.greeting]);
    socket.on("data", (chunk: Buffer) => {
      const skipped = Math.min(left, chunk.length);
      left -= skipped;
      const { frames, rest } = parse(Buffer.concat([bytes, chunk.subarray(skipped)]));
      bytes = Buffer.from(rest);
      for (const frame of joined(frames)) {
        if (frame.type === 4 && (frame.flags & 1) === 0) say(settingsAck());
        if (frame.type === 6 && (frame.flags & 1) === 0) say(pong(frame.payload.readUInt32BE(4)));
        if (frame.type === 1) this.play({ id: frame.id, line: shown(frame, decoder), socket, say });
      }
    });
  }
}

/** Returns a HEADERS frame with these bytes as its header block, valid or not. */
export function blockOf(id: number, octets: Buffer | string): Frame {
  return raw(1, 4, id, octets);
}
