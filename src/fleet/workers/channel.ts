/** Exchanges messages with another process of the same proxy: JSON objects, one per line, over a byte stream. */
import type { Duplex } from "node:stream";
import { wordsOf } from "../../base/failure.ts";
import { JsonLines, type JsonRecord } from "../../base/json.ts";
import { workerLimits } from "./limits.ts";

export type ChannelOwner = {
  /** Called for each message. Returns false if the message is not a valid one; the channel is then closed. */
  received(message: JsonRecord): boolean;
  /**
   * Called once, when the channel ends. `breach`: the rule that the other process has broken; "": it has closed the
   * stream.
   */
  closed(breach: string): void;
};

export class Channel {
  readonly #stream: Duplex;
  readonly #owner: ChannelOwner;
  readonly #lines = new JsonLines(workerLimits.messageBytes);
  #isClosed = false;

  constructor(stream: Duplex, owner: ChannelOwner) {
    this.#stream = stream;
    this.#owner = owner;
    stream.on("data", (bytes: Buffer) => this.#take(bytes));
    stream.on("error", () => this.#close(""));
    stream.on("close", () => this.#close(""));
    stream.on("end", () => this.#close(""));
  }

  /** Sends a message. Closes the channel if the other process has left more than `unreadBytes` unread. */
  send(message: object): void {
    if (this.#isClosed) return;
    this.#stream.write(`${JSON.stringify(message)}\n`);
    if (this.#stream.writableLength > workerLimits.unreadBytes) this.#close("it does not read its messages");
  }

  /** Closes the channel from this side, without calling `closed`. */
  close(): void {
    this.#isClosed = true;
    this.#stream.destroy();
  }

  #take(bytes: Buffer): void {
    if (this.#isClosed) return;
    const isFit = this.#lines.take(bytes, (message) => {
      if (message === undefined || !this.#isTaken(message)) this.#close("it sent an unknown message");
      return !this.#isClosed;
    });
    if (!isFit) this.#close("its message is too long");
  }

  /**
   * Passes a message to the owner. Returns false if the owner does not accept the message's form. If the owner throws,
   * because the contents are wrong, closes the channel and returns true. So a wrong message affects only its sender and
   * not this process (D10).
   */
  #isTaken(message: JsonRecord): boolean {
    try {
      return this.#owner.received(message);
    } catch (reason) {
      this.#close(`its message was no use: ${wordsOf(reason)}`);
      return true;
    }
  }

  #close(breach: string): void {
    if (this.#isClosed) return;
    this.close();
    this.#owner.closed(breach);
  }
}
