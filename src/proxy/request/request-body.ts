/**
 * The bytes of a request's body that may have to be sent later or again. While the request has no upstream connection,
 * all bytes that arrive are kept; the client's flow-control window limits them. After that, only a short body is kept,
 * until the response begins.
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

  /** Number of kept bytes. */
  get length(): number {
    return this.#held.length;
  }

  /** True if all sent bytes are kept, so that they can be sent again if a backend refuses the stream. */
  get isRepeatable(): boolean {
    return this.#isRepeatable;
  }

  keep(bytes: Buffer, start: number, end: number): void {
    this.#held.add(bytes, start, end);
  }

  /** Keeps bytes that are being sent, because they may have to be sent again. A long body is not kept. */
  keepForAgain(bytes: Buffer, start: number, end: number): void {
    if (!this.#isRepeatable) return;
    if (this.#held.length + end - start > requestLimits.repeatableBodyBytes) this.forget();
    else this.#held.add(bytes, start, end);
  }

  /** True if the client has sent the whole body. */
  get isOver(): boolean {
    return this.#isOver;
  }

  end(trailers?: readonly Field[]): void {
    this.#isOver = true;
    this.#trailers = trailers;
  }

  /** Sends all kept bytes, and the end of the body if it has arrived. */
  sendTo(up: StreamWriter): void {
    const isLast = this.#isOver && this.#trailers === undefined;
    const { length } = this.#held;
    if (length === 0 && isLast) up.sendData(nothing, 0, 0, true);
    this.#held.each((bytes, isLastPiece) => up.sendData(bytes, 0, bytes.length, isLast && isLastPiece));
    // If the body was dropped meanwhile, trailers would make a part of it look whole.
    if (this.#held.length < length) return;
    if (this.#trailers !== undefined) up.sendHeaders(this.#trailers, true);
    if (length > requestLimits.repeatableBodyBytes) this.forget();
  }

  /** Drops the kept bytes, because the body will not be sent again. */
  forget(): void {
    this.#isRepeatable = false;
    this.#held.drop();
  }
}
