/** What is read of an object by parsing it whole: of bookmarks, errors, and Tables. */
import { oldestIn } from "../../kube/resource-version.ts";

export type Parsed = {
  readonly endsInitialEvents: boolean;
  readonly code: number;
  readonly reason: string;
  /** Of a 410: see WatchEvent. */
  readonly oldest: string;
  /** `namespace/name`; "" without a name. */
  readonly key: string;
};

const initialEventsEnd = "k8s.io/initial-events-end";

/** Undefined if the text is no JSON object. */
export function parsedJson(text: Buffer): Parsed | undefined {
  const object = parse(text);
  if (!isRecord(object)) return undefined;
  // A Table's own metadata is that of a list: the object's metadata is in its row (watch.md §2.2).
  const metadata = rowMetadataIn(object) ?? recordIn(object, "metadata");
  const name = textIn(metadata, "name");
  return {
    endsInitialEvents: textIn(recordIn(metadata, "annotations"), initialEventsEnd) === "true",
    code: typeof object["code"] === "number" ? object["code"] : 0,
    reason: textIn(object, "reason"),
    oldest: oldestIn(textIn(object, "message")),
    key: name === "" ? "" : `${textIn(metadata, "namespace")}/${name}`,
  };
}

type JsonRecord = Readonly<Record<string, unknown>>;

function parse(text: Buffer): unknown {
  try {
    return JSON.parse(text.toString());
  } catch {
    // Not JSON: the caller treats the stream as opaque.
    return undefined;
  }
}

function isRecord(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function recordIn(parent: JsonRecord | undefined, key: string): JsonRecord | undefined {
  const value = parent?.[key];
  return isRecord(value) ? value : undefined;
}

function textIn(parent: JsonRecord | undefined, key: string): string {
  const value = parent?.[key];
  return typeof value === "string" ? value : "";
}

/** A custom resource may also be called Table and have rows, hence the check of apiVersion. */
function rowMetadataIn(object: JsonRecord): JsonRecord | undefined {
  const isTable = object["kind"] === "Table" && textIn(object, "apiVersion").startsWith("meta.k8s.io/");
  const rows = isTable ? object["rows"] : undefined;
  const row: unknown = Array.isArray(rows) ? rows[0] : undefined;
  return isRecord(row) ? recordIn(recordIn(row, "object"), "metadata") : undefined;
}
