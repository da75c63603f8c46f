/**
 * Stands on the way of the few requests that show who holds leader locks and which pods are gone: a copy of the body is
 * kept, up to a bound, and read when the backend has taken it. Nothing is held back or changed on the way.
 */

import { limits } from "../../base/limits.ts";
import type { Field } from "../../h2/core/field.ts";
import type { StreamListener, StreamWriter } from "../../h2/core/stream-writer.ts";
import { BodyTap } from "./body-tap.ts";

/** One request's body, as far as it is small, and what is to be done with it once the answer is 2xx. */
export class BodyCopy {
  readonly #taken: (body: Buffer) => void;
  #pieces: Buffer[] = [];
  #length = 0;
  #isOver = false;

  /** `taken` hears the whole body, once. */
  constructor(taken: (body: Buffer) => void) {
    this.#taken = taken;
  }

  add(bytes: Buffer, start: number, end: number): void {
    this.#length += end - start;
    if (this.#length > limits.lockBodyBytes) this.#drop();
    else if (!this.#isOver && end > start) this.#pieces.push(Buffer.from(bytes.subarray(start, end)));
  }

  answered(status: number): void {
    if (this.#isOver || status < 200) return;
    const body = Buffer.concat(this.#pieces);
    this.#drop();
    if (status < 300) this.#taken(body);
  }

  #drop(): void {
    this.#isOver = true;
    this.#pieces = [];
  }
}

/** The exchange as its client is to feed it. */
export function copied(owner: StreamListener, copy: BodyCopy | undefined): StreamListener {
  return copy === undefined ? owner : new CopiedBody(owner, copy);
}

/** The client as the exchange is to answer it. */
export function heard(down: StreamWriter, copy: BodyCopy | undefined): StreamWriter {
  return copy === undefined ? down : new LockTap(down, copy);
}

/** What the client sends, copied in passing. */
class CopiedBody implements StreamListener {
  readonly #owner: StreamListener;
  readonly #copy: BodyCopy;

  constructor(owner: StreamListener, copy: BodyCopy) {
    this.#owner = owner;
    this.#copy = copy;
  }

  headers(fields: Field[], end: boolean): void {
    this.#owner.headers(fields, end);
  }

  data(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    this.#copy.add(bytes, start, end);
    this.#owner.data(bytes, start, end, endStream);
  }

  reset(code: number): void {
    this.#owner.reset(code);
  }

  sent(count: number): void {
    this.#owner.sent(count);
  }
}

/** What the client is told, of which the status is heard. */
class LockTap extends BodyTap {
  readonly #copy: BodyCopy;

  constructor(down: StreamWriter, copy: BodyCopy) {
    super(down);
    this.#copy = copy;
  }

  override sendHeaders(fields: readonly Field[], end: boolean): void {
    const [first] = fields;
    if (first?.name === ":status") this.#copy.answered(Number(first.value));
    super.sendHeaders(fields, end);
  }
}
