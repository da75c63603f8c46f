/**
 * One event of a watch, and the decoder interface. Decoders follow the structure of the data and never search its text,
 * so that no object that a user stores can be taken for an event (watch.md §2).
 */

export const eventLimits = {
  /** Most bytes of a watch event: client-go's own limit (D3). */
  eventBytes: 16 * 1024 * 1024,
  /** Most bytes of an event that is parsed whole. The largest is a Table's first bookmark, with about 10 KiB. */
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
  /** For an ERROR 410: the oldest version that the cache can continue from; "" if the message does not name it. */
  readonly oldest: string;
  /** `namespace/name` if the decoder was asked for keys; "" if the event has none. */
  readonly key: string;
};

/** `EventDecoder.next` returns these instead of a position: the event is incomplete; the stream is undecodable. */
export const needsMore = -1;
export const isOpaque = -2;

/**
 * Decodes the bytes of one watch. The caller keeps the bytes of an incomplete event, because the decoder keeps only
 * what it has to parse as a whole. The decoder object is itself the last complete event. Its fields are valid until
 * `next` is called again.
 */
export type EventDecoder = WatchEvent & {
  readonly events: number;
  /** True if the bytes that were read so far end between two events. */
  readonly isWhole: boolean;
  /**
   * Reads bytes[start, end), which follow all bytes read before, up to the end of one event. Returns the position
   * behind that event. Returns `needsMore` if all bytes were read and the event continues; the caller does not pass
   * these bytes again. Returns `isOpaque` if the stream is not in the announced format, or one event exceeds
   * `eventLimits.eventBytes`; the caller passes no more bytes, and forwards all held bytes as they are.
   */
  next(bytes: Buffer, start: number, end: number): number;
};
