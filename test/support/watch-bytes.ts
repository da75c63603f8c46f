import * as fc from "fast-check";
import type { EventFraming } from "../../src/watch/framing.ts";

/** One event as the apiserver writes it. */
export function jsonEvent(type: string, object: unknown): Buffer {
  return Buffer.from(`${JSON.stringify({ type, object })}\n`);
}

/** A frame whose content is opaque to the framing. */
export function protobufEvent(content: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return Buffer.concat([length, content]);
}

export type Relayed = {
  /** What went on, and what is still held; `isOpaque` once the framing gave up. */
  readonly forwarded: Buffer;
  readonly held: Buffer;
  readonly isOpaque: boolean;
};

/** Feeds the chunks as the relay does: forwards up to each boundary, holds the rest, and gives way when told. */
export function relayed(framing: EventFraming, chunks: readonly Buffer[]): Relayed {
  const forwarded: Buffer[] = [];
  let held: Buffer[] = [];
  let isOpaque = false;
  for (const chunk of chunks) {
    // The chunk lies in a larger buffer whose other octets would all mean something.
    const bytes = Buffer.concat([Buffer.from("}\n\n\n\n"), chunk, Buffer.from("\n}\n{")]);
    const end = 5 + chunk.length;
    const whole: number = isOpaque ? -1 : framing.feed(bytes, 5, end);
    isOpaque = whole < 0;
    const until = isOpaque ? end : whole;
    if (until > 5 || isOpaque) {
      forwarded.push(...held, bytes.subarray(5, until));
      held = [];
    }
    held.push(bytes.subarray(until, end));
  }
  return { forwarded: Buffer.concat(forwarded), held: Buffer.concat(held), isOpaque };
}

/** The same bytes whole, octet by octet, and cut in two at every position. */
export function everyCut(bytes: Buffer): Buffer[][] {
  const octets = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
  const halves = octets.map((_, at) => [bytes.subarray(0, at), bytes.subarray(at)]);
  return [[bytes], octets, ...halves];
}

/** Random bytes with random cuts; empty chunks are legal (an empty DATA frame). */
export function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return [...chunks, bytes.subarray(at)];
}

export const sizes: fc.Arbitrary<number[]> = fc.array(fc.nat(40), { maxLength: 30 });
