/**
 * An HTTP/2 client that sends only what the test says: no WINDOW_UPDATE, no acknowledgment of SETTINGS or PING, no
 * check of its own frames. It works over TLS or plain TCP, and records each received frame as one line.
 */
import net from "node:net";
import tls from "node:tls";
import { HpackDecoder } from "../../src/h2/hpack/hpack-decoder.ts";
import { type Frame, joined, parse, preface, settings, shown, wire } from "./h2-frames.ts";
import { within } from "./within.ts";

export type RawTarget = { readonly port: number; readonly ca?: string };

export class RawH2 {
  readonly socket: net.Socket;
  readonly heard: string[] = [];
  /** Number of DATA bytes received, by stream. */
  readonly bodies = new Map<number, number>();
  readonly texts = new Map<number, string>();
  isClosed = false;
  readonly #decoder = new HpackDecoder();
  #bytes: Buffer = Buffer.alloc(0);
  #frames: Frame[] = [];
  #wake = (): void => {};

  constructor(socket: net.Socket) {
    this.socket = socket;
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => this.#hear(chunk));
    socket.on("close", () => {
      this.isClosed = true;
      this.#wake();
    });
  }

  /**
   * Connects over TLS if the target has a CA. `first` is the client's SETTINGS frame; null sends neither preface nor
   * SETTINGS.
   */
  static async connect(target: RawTarget, first: Frame | null = settings()): Promise<RawH2> {
    const { port, ca } = target;
    const host = "127.0.0.1";
    const socket =
      ca === undefined
        ? net.connect({ port, host, allowHalfOpen: true })
        : tls.connect({ port, host, ca, servername: "localhost", ALPNProtocols: ["h2"] });
    socket.setNoDelay(true);
    const client = new RawH2(socket);
    await within(
      10_000,
      "a connection to the proxy",
      new Promise<void>((resolve, reject) => {
        socket.once(ca === undefined ? "connect" : "secureConnect", () => resolve());
        socket.once("error", reject);
      }),
    );
    if (first !== null) client.sendBytes(Buffer.concat([Buffer.from(preface), wire(first)]));
    return client;
  }

  send(...frames: readonly (Frame | Frame[])[]): void {
    this.sendBytes(wire(...frames.flat()));
  }

  sendBytes(bytes: Buffer): void {
    if (!this.socket.destroyed) this.socket.write(bytes);
  }

  /** Waits until the kernel has accepted all written bytes, or the socket is closed. */
  async flushed(): Promise<void> {
    await within(
      10_000,
      "the socket to take what was sent",
      new Promise<void>((resolve) => {
        if (this.socket.destroyed) return resolve();
        this.socket.once("close", resolve);
        this.socket.write("", () => resolve());
      }),
    );
  }

  /** Waits for a frame whose line matches. */
  async expect(line: RegExp, ms = 20_000): Promise<string> {
    await this.until(String(line), () => this.heard.some((heard) => line.test(heard)), ms);
    return this.heard.find((heard) => line.test(heard)) ?? "";
  }

  count(line: RegExp): number {
    return this.heard.filter((heard) => line.test(heard)).length;
  }

  async closed(ms = 20_000): Promise<void> {
    if (this.isClosed) return;
    await this.#waitFor("the end of the socket", () => this.isClosed, ms);
  }

  async until(what: string, isTrue: () => boolean, ms = 20_000): Promise<void> {
    await this.#waitFor(what, () => isTrue() || this.isClosed, ms);
    if (!isTrue())
      throw new Error(`Closed while waiting for ${what}; heard ${this.heard.slice(-5).join(" | ")}`);
  }

  destroy(): void {
    this.socket.destroy();
  }

  async #waitFor(what: string, isTrue: () => boolean, ms: number): Promise<void> {
    const all = async (): Promise<void> => {
      while (!isTrue()) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    };
    await within(ms, () => `${what}; heard ${this.heard.slice(-5).join(" | ")}`, all());
  }

  #hear(chunk: Buffer): void {
    const { frames, rest } = parse(Buffer.concat([this.#bytes, chunk]));
    this.#bytes = Buffer.from(rest);
    this.#frames.push(...frames);
    const last = this.#frames.findLast((frame) => frame.type === 1 || frame.type === 9);
    // An incomplete header block waits for its CONTINUATION frames.
    if (last === undefined || (last.flags & 4) !== 0) {
      for (const frame of joined(this.#frames)) this.#note(frame);
      this.#frames = [];
    }
    this.#wake();
  }

  #note(frame: Frame): void {
    if (frame.type === 0) {
      this.bodies.set(frame.id, (this.bodies.get(frame.id) ?? 0) + frame.payload.length);
      const text = this.texts.get(frame.id) ?? "";
      if (text.length < 65_536) this.texts.set(frame.id, text + frame.payload.toString("latin1"));
    }
    this.heard.push(shown(frame, this.#decoder).slice(0, 400));
  }
}
