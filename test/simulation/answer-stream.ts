/** Answers one HTTP/2 stream of a simulated connection with the embedded demo apiserver. */
import { type Answer, type Ask, bodyBytes } from "../../demo/apiserver/ask.ts";
import { Field } from "../../src/h2/core/field.ts";
import type { RequestHead } from "../../src/h2/core/fields.ts";
import type { StreamListener } from "../../src/h2/core/stream-writer.ts";
import type { Stream } from "../../src/h2/session/stream.ts";

const empty = Buffer.alloc(0);

/** Collects the request of one stream. When it is complete, calls `handle`, which answers it. */
export function answerStream(
  stream: Stream,
  { method, path, fields }: RequestHead,
  end: boolean,
  handle: (ask: Ask, answer: Answer) => void,
): StreamListener {
  const chunks: Buffer[] = [];
  let size = 0;
  const answer = new StreamAnswer(stream);
  const whole = (): void => {
    const pairs = fields.map(({ name, value }) => [name, value] as const);
    handle({ method, path, fields: pairs, body: Buffer.concat(chunks) }, answer);
  };
  if (end) whole();
  return {
    headers: whole,
    data(bytes, from, to, isLast) {
      // One byte above the limit is enough for the apiserver to reject the request. The rest of the body is dropped.
      if (size <= bodyBytes) chunks.push(Buffer.from(bytes.subarray(from, to)));
      size += to - from;
      stream.grant(to - from);
      if (isLast) whole();
    },
    reset: () => answer.gone(),
    sent() {},
  };
}

class StreamAnswer implements Answer {
  readonly #stream: Stream;
  #isOver = false;
  #onGone = (): void => {};

  constructor(stream: Stream) {
    this.#stream = stream;
  }

  head(status: number, fields: readonly (readonly [string, string])[]): void {
    const block = [
      new Field(":status", String(status)),
      ...fields.map(([name, value]) => new Field(name, value)),
    ];
    this.#stream.sendHeaders(block, false);
  }

  write(bytes: Buffer): void {
    this.#stream.sendData(bytes, 0, bytes.length, false);
  }

  end(): void {
    this.#isOver = true;
    this.#stream.sendData(empty, 0, 0, true);
  }

  queued(): number {
    return this.#stream.queuedBytes;
  }

  onGone(run: () => void): void {
    this.#onGone = run;
  }

  /** Called when the stream was reset or its connection is lost. */
  gone(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onGone();
  }
}
