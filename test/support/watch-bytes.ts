import * as fc from "fast-check";
import { type EventDecoder, isOpaque, needsMore, type WatchEvent } from "../../src/watch/codec/event.ts";

/** Returns one event in the JSON that an apiserver writes. */
export function jsonEvent(type: string, object: unknown): Buffer {
  return Buffer.from(`${JSON.stringify({ type, object })}\n`);
}

function varint(number: number): Buffer {
  const octets: number[] = [];
  let left = number;
  for (; left >= 128; left = Math.floor(left / 128)) octets.push((left % 128) + 128);
  return Buffer.from([...octets, left]);
}

/** Returns a field of a protobuf message with a varint or bytes as its value. */
export function field(number: number, value: number | string | Uint8Array): Buffer {
  if (typeof value === "number") return Buffer.concat([varint(number * 8), varint(value)]);
  const octets = Buffer.from(value);
  return Buffer.concat([varint(number * 8 + 2), varint(octets.length), octets]);
}

/** Returns an ObjectMeta in the apiserver's encoding, which includes empty strings. */
export function protobufMetadata(meta: {
  readonly name?: string;
  readonly namespace?: string;
  readonly resourceVersion?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}): Buffer {
  const annotations = Object.entries(meta.annotations ?? {});
  return Buffer.concat([
    field(1, meta.name ?? ""),
    field(2, ""),
    field(3, meta.namespace ?? ""),
    field(4, ""),
    field(5, "5f0c3a52-0000-4000-8000-000000000000"),
    field(6, meta.resourceVersion ?? ""),
    field(7, 3),
    field(8, field(1, 1_700_000_000)),
    ...annotations.map(([key, value]) => field(12, Buffer.concat([field(1, key), field(2, value)]))),
  ]);
}

/** Returns one protobuf event in the apiserver's encoding: its type, and the object in its envelope. */
export function protobufEvent(type: string, object: Uint8Array): Buffer {
  const kind = Buffer.concat([field(1, "v1"), field(2, "Pod")]);
  const unknown = Buffer.concat([field(1, kind), field(2, object), field(3, ""), field(4, "")]);
  const raw = Buffer.concat([Buffer.from("k8s\0"), unknown]);
  return framed(Buffer.concat([field(1, type), field(2, field(1, raw))]));
}

/** Returns the content with a length prefix of four bytes. */
export function framed(content: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return Buffer.concat([length, content]);
}

export type Relayed = {
  /** The bytes that were forwarded, and those still held. `isOpaque` is true if the decoder gave up. */
  readonly forwarded: Buffer;
  readonly held: Buffer;
  readonly isOpaque: boolean;
  readonly events: readonly WatchEvent[];
};

/**
 * Feeds the chunks to the decoder as the relay does: forwards up to each boundary of an event, holds the rest, and
 * stops decoding when the decoder gives up.
 */
export function relayed(decoder: EventDecoder, chunks: readonly Buffer[]): Relayed {
  const forwarded: Buffer[] = [];
  const events: WatchEvent[] = [];
  let held: Buffer[] = [];
  let isBroken = false;
  for (const chunk of chunks) {
    // The chunk is part of a larger buffer. Each byte around it would change the result if the decoder read it.
    const bytes = Buffer.concat([Buffer.from("}\n\n\n\n"), chunk, Buffer.from("\n}\n{")]);
    const end = 5 + chunk.length;
    let whole = 5;
    while (whole < end && !isBroken) {
      const behind = decoder.next(bytes, whole, end);
      if (behind === needsMore) break;
      isBroken = behind === isOpaque;
      if (isBroken) break;
      events.push(copyOf(decoder));
      whole = behind;
    }
    if (isBroken) whole = end;
    if (whole > 5) {
      forwarded.push(...held, bytes.subarray(5, whole));
      held = [];
    }
    held.push(bytes.subarray(whole, end));
  }
  return { forwarded: Buffer.concat(forwarded), held: Buffer.concat(held), isOpaque: isBroken, events };
}

/** Returns a copy of the event. The decoder reuses its own object for the next event. */
export function copyOf({
  type,
  version,
  endsInitialEvents,
  code,
  reason,
  oldest,
  key,
}: WatchEvent): WatchEvent {
  return { type, version, endsInitialEvents, code, reason, oldest, key };
}

/** Returns the bytes in one chunk, in chunks of one byte, and cut in two at every position. */
export function everyCut(bytes: Buffer): Buffer[][] {
  const octets = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
  const halves = octets.map((_, at) => [bytes.subarray(0, at), bytes.subarray(at)]);
  return [[bytes], octets, ...halves];
}

/** Cuts the bytes into chunks of these sizes. A size of 0 is valid, because a DATA frame may be empty. */
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
