import { connect, type Socket } from "node:net";
import { within } from "./within.ts";

/** A raw TCP peer (client or server) that writes exactly the given bytes, and collects what it receives. */
export class RawPeer {
  readonly socket: Socket;
  /** Everything received so far and not yet taken by `expect`, as latin1. */
  text = "";
  isClosed = false;
  /** True if a FIN was received. */
  isEnded = false;
  #wake = (): void => {};

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      this.text += chunk.toString("latin1");
      this.#wake();
    });
    socket.on("end", () => {
      this.isEnded = true;
      this.#wake();
    });
    socket.on("close", () => {
      this.isClosed = true;
      this.#wake();
    });
  }

  send(text: string | Buffer): void {
    this.socket.write(typeof text === "string" ? Buffer.from(text, "latin1") : text);
  }

  /** Waits until the received text contains `wanted`. Removes and returns the text up to the end of the match. */
  async expect(wanted: string | RegExp): Promise<string> {
    await this.#until(String(wanted), () => this.text.search(asPattern(wanted)) >= 0);
    const found = asPattern(wanted).exec(this.text);
    const end = (found?.index ?? 0) + (found?.[0].length ?? 0);
    const taken = this.text.slice(0, end);
    this.text = this.text.slice(end);
    return taken;
  }

  /** Waits for the socket to close, and returns the remaining text. */
  async closed(): Promise<string> {
    await this.#until("the end of the socket", () => this.isClosed);
    return this.text;
  }

  async ended(): Promise<string> {
    await this.#until("the other side's end", () => this.isEnded || this.isClosed);
    return this.text;
  }

  async #until(what: string, isTrue: () => boolean): Promise<void> {
    while (!isTrue()) {
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      if (this.isClosed)
        throw new Error(`Closed while waiting for ${what}; got ${JSON.stringify(this.text)}`);
      await within(20_000, `${what}; got ${JSON.stringify(this.text.slice(0, 400))}`, woken);
    }
  }
}

function asPattern(wanted: string | RegExp): RegExp {
  return typeof wanted === "string"
    ? new RegExp(wanted.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
    : wanted;
}

export async function connectRaw(port: number, allowHalfOpen = true): Promise<RawPeer> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen });
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  return new RawPeer(socket);
}
