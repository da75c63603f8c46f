/** What is read of a protobuf object by parsing it whole: of bookmarks and errors. */
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
import type { Parsed } from "./json-parsed.ts";

const initialEventsEnd = "k8s.io/initial-events-end";

/** From what follows an event's type (protobuf-metadata.ts draws it); undefined when it is no such message. */
export function parsedProtobuf(bytes: Buffer): Parsed | undefined {
  const raw = bytesIn(messageIn(messageOf(bytes), 2), 1);
  const object = raw === undefined ? undefined : enveloped(raw);
  if (object === undefined) return undefined;
  return {
    // The metadata's field 12: its annotations.
    endsInitialEvents: entriesIn(messageIn(object, 1), 12, initialEventsEnd).includes("true"),
    code: numberIn(object, 6) ?? 0,
    reason: textIn(object, 4),
    oldest: oldestIn(textIn(object, 3)),
    key: "",
  };
}
