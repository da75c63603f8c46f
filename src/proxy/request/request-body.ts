/**
 * A request's body as far as it may have to be sent (again): all that came before there was an upstream connection, bounded by the
 * client's own window; after that while it is short and nothing is answered.
 */

import { limits } from "../../base/limits.ts";
import { AccountedBuffer } from "../../h2/core/accounted-buffer.ts";
import type { Buffered } from "../../h2/core/buffered.ts";
import type { Field } from "../../h2/core/field.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";

const nothing = Buffer.alloc(0);

export class RequestBody {
  readonly #held: AccountedBuffer;
  #trailers: readonly Field[] | undefined;
  #isRepeatable = true;
  /** The client has sent all of it. */
  isOver = false;

  constructor(buffered: Buffered) {
    this.#held = new AccountedBuffer(buffered);
  }

  /** Octets that are kept. */
  get length(): number {
    return this.#held.length;
  }

  /** Is all of the body that has gone still here, to be sent once more should the backend refuse the stream? */
  get isRepeatable(): boolean {
    return this.#isRepeatable;
  }

  /** What comes before there is an upstream connection. */
  keep(bytes: Buffer, start: number, end: number): void {
    this.#held.add(bytes, start, end);
  }

  /** What goes at once, and may have to go again. A long body is not kept for that: it is the client's to repeat. */
  keepForAgain(bytes: Buffer, start: number, end: number): void {
    if (!this.#isRepeatable) return;
    this.#held.add(bytes, start, end);
    this.#forgetIfLong();
  }

  endWith(trailers: readonly Field[]): void {
    this.isOver = true;
    this.#trailers = trailers;
  }

  /** Sends what is kept; what comes later follows it. */
  sendTo(up: StreamWriter): void {
    const isLast = this.isOver && this.#trailers === undefined;
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
    if (this.#held.length > limits.repeatableBodyBytes) this.forget();
  }
}
