/**
 * A request's body as far as it may have to be sent (again): everything that came before there was a connection, bounded
 * by the client's own window; after that while it is short and nothing is answered.
 */

import { AccountedBuffer, type Buffered } from "../../h2/core/buffered.ts";
import type { Field } from "../../h2/core/field.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import { requestLimits } from "./limits.ts";

const nothing = Buffer.alloc(0);

export class RequestBody {
  readonly #held: AccountedBuffer;
  #trailers: readonly Field[] | undefined;
  #isRepeatable = true;
  #isOver = false;

  constructor(buffered: Buffered) {
    this.#held = new AccountedBuffer(buffered);
  }

  /** The number of bytes that are kept. */
  get length(): number {
    return this.#held.length;
  }

  /**
   * True if everything that was sent of the body is still kept, so that it can be repeated if the backend refuses the
   * stream.
   */
  get isRepeatable(): boolean {
    return this.#isRepeatable;
  }

  /** Keeps bytes that come before there is a connection. */
  keep(bytes: Buffer, start: number, end: number): void {
    this.#held.add(bytes, start, end);
  }

  /** Keeps bytes that are sent at once, and may have to be sent again. A long body is not kept: its client may repeat it. */
  keepForAgain(bytes: Buffer, start: number, end: number): void {
    if (!this.#isRepeatable) return;
    this.#held.add(bytes, start, end);
    this.#forgetIfLong();
  }

  /** True if the client has sent all of it. */
  get isOver(): boolean {
    return this.#isOver;
  }

  end(trailers?: readonly Field[]): void {
    this.#isOver = true;
    this.#trailers = trailers;
  }

  /** Sends what is kept; later bytes follow. */
  sendTo(up: StreamWriter): void {
    const isLast = this.#isOver && this.#trailers === undefined;
    const { length } = this.#held;
    if (length > 0 || isLast) up.sendData(length > 0 ? this.#held.peek() : nothing, 0, length, isLast);
    if (this.#trailers !== undefined) up.sendHeaders(this.#trailers, true);
    this.#forgetIfLong();
  }

  /** It will not be sent again. */
  forget(): void {
    this.#isRepeatable = false;
    this.#held.take();
  }

  #forgetIfLong(): void {
    if (this.#held.length > requestLimits.repeatableBodyBytes) this.forget();
  }
}
