/**
 * An event of a watch, and the interface of the decoders. A decoder follows the structure of the data and never
 * searches its text, so that no text in a user's object can be taken for an event (watch.md §2).
 */

export const eventLimits = {
  /** Maximum number of bytes of a watch event: client-go's own limit (D3). */
  eventBytes: 16 * 1024 * 1024,
  /**
   * Maximum number of bytes of an event that the decoder parses as a whole. The largest such event is the first
   * bookmark of a Table, which has about 10 KiB.
   */
  parsedEventBytes: 256 * 1024,
} as const;

export const eventTypes = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"] as const;
export type EventType = (typeof eventTypes)[number];

export type WatchEvent = {
  readonly type: EventType;
  /** The object's resourceVersion: decimal, 1 to 20 digits. "" if it has none, and always for an ERROR. */
  readonly version: string;
  /** True for the bookmark after which all events are live (annotation `k8s.io/initial-events-end`). */
  readonly endsInitialEvents: boolean;
  /** `code` and `reason` of an ERROR's Status; 0 and "" if there is none. */
  readonly code: number;
  readonly reason: string;
  /** For an ERROR 410: the oldest version that a watch may start from; "" if the ERROR's message does not name it. */
  readonly oldest: string;
  /** `namespace/name` of the object; "" if the decoder does not keep keys, or the object has no name. */
  readonly key: string;
};

/** `EventDecoder.next` returns `needsMore` for an incomplete event, and `isOpaque` for an undecodable stream. */
export const needsMore = -1;
export const isOpaque = -2;

/**
 * Decodes the bytes of one watch at a time. Watches share decoders (`Decoders`): after a whole event, the next bytes may
 * come from another watch, so a decoder keeps nothing of a watch between two events. The decoder's fields describe the
 * last complete event until `next` is called again. The caller keeps the bytes of an incomplete event.
 */
export type EventDecoder = WatchEvent & {
  readonly events: number;
  /** True if the bytes read so far end between two events. */
  readonly isWhole: boolean;
  /**
   * Reads bytes[start, end) up to the end of one event, and returns the position after it. Returns `needsMore` if the
   * event continues; the next call then passes only the bytes that follow `end`. Returns `isOpaque` if the stream is
   * not in the format of its content type or an event exceeds `eventLimits.eventBytes`; the caller then forwards all
   * bytes that it has kept.
   */
  next(bytes: Buffer, start: number, end: number): number;
};
