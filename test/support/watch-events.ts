/** Short notations for decoded watch events. */
import type { EventType, WatchEvent } from "../../src/watch/codec/event.ts";

export function eventOf(type: EventType, version = "", more: Partial<WatchEvent> = {}): WatchEvent {
  return { type, version, endsInitialEvents: false, code: 0, reason: "", oldest: "", key: "", ...more };
}

const types: Readonly<Record<string, EventType>> = {
  "+": "ADDED",
  "~": "MODIFIED",
  "-": "DELETED",
  "=": "BOOKMARK",
  "!": "ERROR",
};

/**
 * Parses the notation: `+5` is ADDED at version 5, `~` MODIFIED, `-5a` DELETED of the object a, `=9` a bookmark, `=9$`
 * the bookmark that ends the initial events, `!410` an ERROR.
 */
export function eventFrom(word: string): WatchEvent {
  const [, sign = "", number = "", rest = ""] = /^(.)(\d*)(.*)$/.exec(word) ?? [];
  const type = types[sign];
  if (type === undefined) throw new Error(`No event: ${word}`);
  if (type === "ERROR") return eventOf(type, "", { code: Number(number) });
  return eventOf(type, number, { endsInitialEvents: rest === "$", key: rest });
}
