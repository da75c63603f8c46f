/** What the JSON and protobuf decoders share: an event's fields, and the parsing of BOOKMARKs and ERRORs. */
import { type EventDecoder, type EventType, eventLimits, eventTypes } from "./event.ts";

/** The fields of an event that the decoder can find only by parsing the whole object. */
export type Parsed = {
  readonly endsInitialEvents: boolean;
  readonly code: number;
  readonly reason: string;
  /** For an ERROR 410: the oldest version that a watch may start from (`WatchEvent.oldest`). */
  readonly oldest: string;
  /** `namespace/name`; "": the object has no name; undefined: the name is in the decoder's `Metadata`. */
  readonly key?: string;
};

/** The annotation of the bookmark that ends the initial events; its value is "true". */
export const initialEventsEnd = "k8s.io/initial-events-end";

type Metadata = { readonly version: string; readonly name: string; readonly namespace: string };

export abstract class DecodedEvent implements EventDecoder {
  readonly #found: Metadata;
  protected readonly keepsKeys: boolean;
  readonly #small = new SmallEvent();
  #parsed: Parsed | undefined;
  type: EventType = "ADDED";
  events = 0;

  constructor(found: Metadata, keepsKeys: boolean) {
    this.#found = found;
    this.keepsKeys = keepsKeys;
  }

  abstract readonly isWhole: boolean;
  abstract next(bytes: Buffer, start: number, end: number): number;
  /** Parses the bytes after an event's type. Returns undefined if they are invalid. */
  protected abstract parse(whole: Buffer): Parsed | undefined;

  get version(): string {
    return this.type === "ERROR" ? "" : this.#found.version;
  }

  get endsInitialEvents(): boolean {
    return this.type === "BOOKMARK" && this.#parsed?.endsInitialEvents === true;
  }

  get code(): number {
    return this.type === "ERROR" ? (this.#parsed?.code ?? 0) : 0;
  }

  get reason(): string {
    return this.type === "ERROR" ? (this.#parsed?.reason ?? "") : "";
  }

  get oldest(): string {
    return this.type === "ERROR" ? (this.#parsed?.oldest ?? "") : "";
  }

  get key(): string {
    if (!this.keepsKeys) return "";
    if (this.#parsed?.key !== undefined) return this.#parsed.key;
    return this.#found.name === "" ? "" : `${this.#found.namespace}/${this.#found.name}`;
  }

  protected get isRare(): boolean {
    return this.type === "BOOKMARK" || this.type === "ERROR";
  }

  protected get isParsedWhole(): boolean {
    return this.isRare;
  }

  protected begin(): void {
    this.#parsed = undefined;
  }

  /** Reads bytes[object, end), a piece of an incomplete event. */
  protected continues(bytes: Buffer, object: number, end: number): void {
    if (this.isParsedWhole) this.#small.keep(bytes, object, end);
  }

  /** Reads bytes[object, end), the last piece of an event. Returns false if the event is invalid. */
  protected complete(bytes: Buffer, object: number, end: number): boolean {
    this.events++;
    if (!this.isParsedWhole) {
      this.#small.forget();
      return true;
    }
    const whole = this.#small.take(bytes, object, end);
    if (whole !== undefined) this.#parsed = this.parse(whole);
    // A Table that is too long to be parsed is a valid event without a key.
    return this.#parsed !== undefined || (whole === undefined && !this.isRare);
  }
}

/** Returns the bytes that precede an event's object, indexed by the first letter of the event's type. */
export function headsByLetter(
  headOf: (type: EventType) => Buffer,
): ReadonlyMap<number, { readonly type: EventType; readonly head: Buffer }> {
  return new Map(eventTypes.map((type) => [type.charCodeAt(0), { type, head: headOf(type) }]));
}

const none: Buffer = Buffer.alloc(0);

/** Collects the bytes of an event that must be parsed as a whole. An event that arrives in one piece is not copied. */
export class SmallEvent {
  #pieces: Buffer = none;
  #isTooLong = false;

  /** Keeps a copy of bytes[start, end), a piece of an incomplete event. */
  keep(bytes: Buffer, start: number, end: number): void {
    if (this.#isTooLong) return;
    this.#isTooLong = this.#pieces.length + end - start > eventLimits.parsedEventBytes;
    this.#pieces = this.#isTooLong ? none : Buffer.concat([this.#pieces, bytes.subarray(start, end)]);
  }

  /**
   * Returns the whole event, whose last piece is bytes[start, end), and forgets the pieces. Returns undefined if the
   * event is too long.
   */
  take(bytes: Buffer, start: number, end: number): Buffer | undefined {
    if (this.#pieces.length > 0) this.keep(bytes, start, end);
    const isTooLong = this.#isTooLong || end - start > eventLimits.parsedEventBytes;
    const whole = this.#pieces.length > 0 ? this.#pieces : bytes.subarray(start, end);
    this.forget();
    return isTooLong ? undefined : whole;
  }

  forget(): void {
    this.#pieces = none;
    this.#isTooLong = false;
  }
}
