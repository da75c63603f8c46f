/**
 * What the decoders of both content types share: how the current event reads, and the rare and small events that are
 * parsed whole, BOOKMARKs and ERRORs.
 */
import { type EventDecoder, type EventType, eventLimits, eventTypes } from "./event.ts";

/** What is read of an object by parsing it whole. */
export type Parsed = {
  readonly endsInitialEvents: boolean;
  readonly code: number;
  readonly reason: string;
  /** Of a 410: see WatchEvent. */
  readonly oldest: string;
  /** `namespace/name`; "" without a name. Undefined if it is found without parsing. */
  readonly key?: string;
};

/** The annotation of the bookmark behind the initial events; its value is "true". */
export const initialEventsEnd = "k8s.io/initial-events-end";

/** What is found in the object without parsing it whole. */
type Metadata = { readonly version: string; readonly name: string; readonly namespace: string };

export abstract class DecodedEvent implements EventDecoder {
  readonly #found: Metadata;
  protected readonly keepsKeys: boolean;
  readonly #small = new SmallEvent();
  #parsed: Parsed | undefined;
  type: EventType = "ADDED";
  events = 0;

  /** `keepsKeys`: true if the events' keys are needed. */
  constructor(found: Metadata, keepsKeys: boolean) {
    this.#found = found;
    this.keepsKeys = keepsKeys;
  }

  abstract readonly isWhole: boolean;
  abstract next(bytes: Buffer, start: number, end: number): number;
  /** Returns undefined if the bytes, an event without its head, cannot be understood. */
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

  /** True if the event is parsed whole. */
  protected get isSmall(): boolean {
    return this.isRare;
  }

  protected begin(): void {
    this.#parsed = undefined;
  }

  /** bytes[object, end) are a piece of the event, which continues behind them. */
  protected continues(bytes: Buffer, object: number, end: number): void {
    if (this.isSmall) this.#small.keep(bytes, object, end);
  }

  /** bytes[object, end) are the last piece of the event. Returns false if it cannot be understood. */
  protected complete(bytes: Buffer, object: number, end: number): boolean {
    this.events++;
    if (!this.isSmall) {
      this.#small.forget();
      return true;
    }
    const whole = this.#small.take(bytes, object, end);
    if (whole !== undefined) this.#parsed = this.parse(whole);
    // Without a key a watch cannot continue on another backend, but the event itself is valid.
    return this.#parsed !== undefined || (whole === undefined && !this.isRare);
  }
}

/** The heads that events may begin with, by the first letter of their type. */
export function headsByLetter(
  headOf: (type: EventType) => Buffer,
): ReadonlyMap<number, { readonly type: EventType; readonly head: Buffer }> {
  return new Map(eventTypes.map((type) => [type.charCodeAt(0), { type, head: headOf(type) }]));
}

const none: Buffer = Buffer.alloc(0);

/**
 * The bytes of an event that is parsed whole. They are copied only while such an event is incomplete. An event that comes
 * in one piece is read in place.
 */
export class SmallEvent {
  #pieces: Buffer = none;
  #isTooLong = false;

  /** Keeps a copy of bytes[start, end): the event continues behind them. */
  keep(bytes: Buffer, start: number, end: number): void {
    if (this.#isTooLong) return;
    this.#isTooLong = this.#pieces.length + end - start > eventLimits.parsedEventBytes;
    this.#pieces = this.#isTooLong ? none : Buffer.concat([this.#pieces, bytes.subarray(start, end)]);
  }

  /** Returns the whole event, whose last piece is bytes[start, end), and forgets it; undefined if it was too long. */
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
