/**
 * Decodes watch events in Kubernetes protobuf: four bytes with the length of the event, big-endian, then the event
 * (watch.md §2.1). The apiserver writes the length and the event separately, so a chunk may end anywhere in either.
 */
import {
  bytesIn,
  entriesIn,
  enveloped,
  messageIn,
  messageOf,
  numberIn,
  textIn,
} from "../../base/protobuf.ts";
import { oldestIn } from "../../kube/resource-version.ts";
import { DecodedEvent, headsByLetter, initialEventsEnd, type Parsed } from "./decoded-event.ts";
import { eventLimits, isOpaque, needsMore } from "./event.ts";
import { ProtobufMetadata } from "./protobuf-metadata.ts";

const lengthBytes = 4;

/** Returns the beginning of an event: field 1, which is its type. */
function headOf(type: string): Buffer {
  return Buffer.from([0x0a, type.length, ...Buffer.from(type)]);
}

const typesByLetter = headsByLetter(headOf);
const anyHead = headOf("ADDED");
const lengthAt = 1;
const letterAt = 2;

export class ProtobufEvents extends DecodedEvent {
  readonly #metadata: ProtobufMetadata;
  #lengthBytesLeft = lengthBytes;
  /**
   * While the length of an event is read, the value of its bytes so far. After that, the number of bytes of the event
   * that have not arrived.
   */
  #left = 0;
  #head = anyHead;
  #matched = 0;
  #statedTypeLength = 0;

  constructor(keepsKeys: boolean) {
    const metadata = new ProtobufMetadata(keepsKeys);
    super(metadata, keepsKeys);
    this.#metadata = metadata;
  }

  get isWhole(): boolean {
    return this.#lengthBytesLeft === lengthBytes;
  }

  next(bytes: Buffer, start: number, end: number): number {
    if (this.isWhole) this.begin();
    const here = this.#readLength(bytes, start, end);
    if (this.#lengthBytesLeft > 0) return needsMore;
    // An event is never empty, because it has a type. If a length exceeds the limit, the proxy no longer decodes the
    // stream. Otherwise a peer could make the proxy hold an event of a gigabyte (A60).
    if (this.#left === 0 || this.#left > eventLimits.eventBytes) return isOpaque;
    const stop = Math.min(end, here + this.#left);
    const object = this.#readHead(bytes, here, stop);
    if (object < 0 || this.#metadata.walk(bytes, object, stop) < 0) return isOpaque;
    this.#left -= stop - here;
    if (this.#left === 0) return this.#endEvent(bytes, object, stop) ? stop : isOpaque;
    this.continues(bytes, object, stop);
    return needsMore;
  }

  protected override begin(): void {
    super.begin();
    this.#matched = 0;
  }

  #readLength(bytes: Buffer, start: number, end: number): number {
    let here = start;
    while (this.#lengthBytesLeft > 0 && here < end) {
      // Multiplies instead of shifting, because a shift would return a negative number if the highest bit is set.
      this.#left = this.#left * 256 + (bytes[here++] ?? 0);
      this.#lengthBytesLeft--;
    }
    return here;
  }

  get #isHeadRead(): boolean {
    return this.#matched === this.#head.length;
  }

  /**
   * Returns the position after the head (`headOf`); `end` if the head is incomplete; -1 if the event begins
   * differently.
   */
  #readHead(bytes: Buffer, start: number, end: number): number {
    if (this.#isHeadRead) return start;
    let here = start;
    while (here < end && this.#matched < this.#head.length)
      if (!this.#isNextOfHead(bytes[here++] ?? 0)) return -1;
    if (this.#matched === this.#head.length) this.#metadata.begin(this.#left - (here - start));
    return here;
  }

  #isNextOfHead(byte: number): boolean {
    const index = this.#matched++;
    if (index === lengthAt) {
      this.#statedTypeLength = byte;
      return true;
    }
    if (index === letterAt) {
      const known = typesByLetter.get(byte);
      if (known === undefined || known.type.length !== this.#statedTypeLength) return false;
      this.type = known.type;
      this.#head = known.head;
    }
    return byte === this.#head[index];
  }

  #endEvent(bytes: Buffer, object: number, stop: number): boolean {
    if (!this.#isHeadRead || !this.#metadata.isOver) return false;
    this.#lengthBytesLeft = lengthBytes;
    return this.complete(bytes, object, stop);
  }

  protected parse(whole: Buffer): Parsed | undefined {
    return parsedProtobuf(whole);
  }
}

/** Parses the bytes after an event's type (layout: protobuf-metadata.ts). Returns undefined if they are invalid. */
export function parsedProtobuf(bytes: Buffer): Parsed | undefined {
  const raw = bytesIn(messageIn(messageOf(bytes), 2), 1);
  const object = raw === undefined ? undefined : enveloped(raw);
  if (object === undefined) return undefined;
  return {
    // Field 12 of the metadata contains the annotations.
    endsInitialEvents: entriesIn(messageIn(object, 1), 12, initialEventsEnd).includes("true"),
    code: numberIn(object, 6) ?? 0,
    reason: textIn(object, 4),
    oldest: oldestIn(textIn(object, 3)),
  };
}
