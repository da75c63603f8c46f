/** A side before another one that passes everything on: for those that hear or read something of it on the way. */
import type { Field } from "../../h2/core/field.ts";
import type { Side } from "../../h2/core/side.ts";

export class PassingSide implements Side {
  readonly #down: Side;

  constructor(down: Side) {
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
