/** Events of a watch as a decoder tells them, in few words. */
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

/** `+5` ADDED at version 5, `~` MODIFIED, `-5a` DELETED of an object a, `=9` a bookmark, `=9$` the marker, `!410`. */
export function eventFrom(word: string): WatchEvent {
  const [, sign = "", number = "", rest = ""] = /^(.)(\d*)(.*)$/.exec(word) ?? [];
  const type = types[sign];
  if (type === undefined) throw new Error(`No event: ${word}`);
  if (type === "ERROR") return eventOf(type, "", { code: Number(number) });
  return eventOf(type, number, { endsInitialEvents: rest === "$", key: rest });
}
