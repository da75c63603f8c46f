/**
 * One HTTP/2 session of an embedded apiserver: connects a transport and our own HTTP/2 implementation, and turns each
 * stream into an Ask and an Answer. The transport is a socket in the demo (host.ts) and a simulated one in the
 * simulation.
 */
import type { Clock } from "../../base/clock.ts";
import { Field } from "../../h2/core/field.ts";
import type { RequestHead } from "../../h2/core/fields.ts";
import type { FlushScheduler } from "../../h2/core/flush-scheduler.ts";
import type { StreamListener } from "../../h2/core/stream-writer.ts";
import { Session } from "../../h2/session/session.ts";
import type { Stream } from "../../h2/session/stream.ts";
import type { Wire, WireOwner } from "../../proxy/net/wire.ts";
import { demoLimits } from "../objects/demo-limits.ts";
import type { Answer, Ask } from "./ask.ts";

/** What kube-apiserver allows (k8s.io/apiserver pkg/server/secure_serving.go). */
const maxStreams = 100;
const empty = Buffer.alloc(0);

export type ApiserverSessionParts = {
  readonly handle: (ask: Ask, answer: Answer) => void;
  readonly clock: Clock;
  readonly turn: FlushScheduler;
};

export class ApiserverSession implements WireOwner {
  readonly session: Session;
  readonly #wire: Wire;

  /** `connect` returns the transport, which this session owns. */
  constructor({ handle, clock, turn }: ApiserverSessionParts, connect: (owner: WireOwner) => Wire) {
    this.#wire = connect(this);
    this.session = new Session({
      role: "server",
      clock,
      turn,
      maxStreams,
      owner: {
        opened: (stream, request, end) => answerStream(stream, request, end, handle),
        write: (buffers, written) => this.#wire.write(buffers, written),
        changed() {},
        ponged() {},
        ended: () => this.#ended(),
      },
    });
  }

  receive(chunk: Buffer): void {
    this.session.receive(chunk);
  }

  drained(): void {
    this.session.drained();
  }

  closed(): void {
    this.session.lose();
  }

  #ended(): void {
    this.session.flush();
    this.#wire.end();
  }
}

/** Collects one stream's request until it is complete, then has it answered on that stream. */
export function answerStream(
  stream: Stream,
  { method, path, fields }: RequestHead,
  end: boolean,
  handle: ApiserverSessionParts["handle"],
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
      // One byte beyond the limit is enough to reject the request; the rest is read and dropped.
      if (size <= demoLimits.bodyBytes) chunks.push(Buffer.from(bytes.subarray(from, to)));
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

  /** The stream was reset or its session is lost. */
  gone(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onGone();
  }
}
