/**
 * Observes the few requests that show which clients hold leader locks and which pods are gone: it keeps a copy of the
 * body, up to a bound, and reads it when the backend has accepted it. Nothing is delayed or changed.
 */

import { limits } from "../../base/limits.ts";
import type { Field } from "../../h2/core/field.ts";
import type { StreamListener, StreamWriter } from "../../h2/core/stream-writer.ts";
import { BodyTap } from "./body-tap.ts";

/** The copy of one request's body, if it is small, and what to do with it once the response is 2xx. */
export class BodyCopy {
  readonly #taken: (body: Buffer) => void;
  #pieces: Buffer[] = [];
  #length = 0;
  #isOver = false;

  /** `taken` gets the whole body, once. */
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

/** The listener that gets what the client sends: the exchange, with the copy before it. */
export function copied(owner: StreamListener, copy: BodyCopy | undefined): StreamListener {
  return copy === undefined ? owner : new CopiedBody(owner, copy);
}

/** The writer that the exchange answers: the client, with the tap before it. */
export function heard(down: StreamWriter, copy: BodyCopy | undefined): StreamWriter {
  return copy === undefined ? down : new LockTap(down, copy);
}

/** Copies what the client sends. */
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

/** Reads the status of the response. */
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
