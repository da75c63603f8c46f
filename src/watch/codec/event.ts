/**
 * One event of a watch, and what reads them out of a stream. What is written here is read by structure, never by
 * searching text, so that nothing a user stores can pass for it (watch.md §2).
 */
export const eventTypes = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"] as const;
export type EventType = (typeof eventTypes)[number];

export type WatchEvent = {
  readonly type: EventType;
  /** The object's resourceVersion: decimal, 1 to 20 digits. "" when it has none, and always for an ERROR. */
  readonly version: string;
  /** Is it the bookmark behind which all events are live (annotation `k8s.io/initial-events-end`)? */
  readonly endsInitialEvents: boolean;
  /** Of an ERROR, its Status: `code`, 0 when there is none, and `reason`. */
  readonly code: number;
  readonly reason: string;
  /** Of an ERROR 410: the oldest version that the cache still goes on from, if its message names it; else "". */
  readonly oldest: string;
  /** `namespace/name` when the decoder was asked for keys, "" when they cannot be told. */
  readonly key: string;
};

/** What `EventDecoder.next` returns instead of a position. */
export const needsMore = -1;
export const isOpaque = -2;

/**
 * Follows one watch's bytes and keeps none of them but of what it has to parse whole: whoever feeds it holds what is
 * not whole yet. Is itself the event completed last, which stands until `next` is called again.
 */
export type EventDecoder = WatchEvent & {
  /** Events completed so far. */
  readonly events: number;
  /** Does the stream stand between two events, so that nothing is held back? */
  readonly isWhole: boolean;
  /**
   * Reads bytes[start, end), which follow all that was read before, up to the end of one event and returns the
   * position behind it. `needsMore` when all of them were read and the event goes on: they are not to be fed again.
   * `isOpaque` when the stream is not what it claimed to be, or one event passes `limits.eventBytes`: nothing is to
   * be fed any more, and all that is held may go on as it is.
   */
  next(bytes: Buffer, start: number, end: number): number;
};
