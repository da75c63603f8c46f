/** A StreamWriter that forwards everything to another one: the base of those that read something in passing. */
import type { Field } from "../../h2/core/field.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";

export class BodyTap implements StreamWriter {
  readonly #down: StreamWriter;

  constructor(down: StreamWriter) {
    this.#down = down;
  }

  sendHeaders(fields: readonly Field[], end: boolean): void {
    this.#down.sendHeaders(fields, end);
  }

  sendData(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    this.#down.sendData(bytes, start, end, endStream);
  }

  reset(code: number): void {
    this.#down.reset(code);
  }

  closeAfter(): void {
    this.#down.closeAfter?.();
  }

  grant(count: number): void {
    this.#down.grant(count);
  }

  get queuedBytes(): number {
    return this.#down.queuedBytes;
  }
}
