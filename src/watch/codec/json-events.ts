/**
 * Decodes watch events in JSON, one event per line. Go escapes control characters, so a line feed always ends an event.
 * The decoder checks the first bytes of every line. If a line does not begin as an apiserver would write it, the stream
 * is opaque (not decodable), because a server that formats JSON differently may write line feeds inside an object.
 */
import { isRecord, type JsonRecord, parseJson, recordAt, textAt } from "../../base/json.ts";
import { oldestIn } from "../../kube/resource-version.ts";
import { DecodedEvent, headsByLetter, initialEventsEnd, type Parsed } from "./decoded-event.ts";
import { eventLimits, isOpaque, needsMore } from "./event.ts";
import { JsonMetadata } from "./json-metadata.ts";

const lineFeed = 0x0a;
const closingBrace = 0x7d;

/**
 * Returns the *head* of an event: the bytes before the event's object. The apiserver's encoder writes the keys in this
 * order, without blanks (watch.md §2.1).
 */
function headOf(type: string): Buffer {
  return Buffer.from(`{"type":"${type}","object":`);
}

/**
 * The heads of all event types begin with the same bytes. The type follows, and its first letter identifies the head.
 */
const anyHead = headOf("ADDED");
const typeAt = anyHead.indexOf("ADDED");
const typesByLetter = headsByLetter(headOf);

/** Up to this many bytes, a loop is faster than `indexOf`, which does not stop at `end`. */
const shortBytes = 64;

export class JsonEvents extends DecodedEvent {
  readonly #metadata: JsonMetadata;
  #lineLength = 0;
  #head = anyHead;
  #matchedOfHead = 0;
  #lastByte = 0;

  constructor(keepsKeys: boolean) {
    const metadata = new JsonMetadata(keepsKeys);
    super(metadata, keepsKeys);
    this.#metadata = metadata;
  }

  get isWhole(): boolean {
    return this.#lineLength === 0;
  }

  next(bytes: Buffer, start: number, end: number): number {
    if (this.#lineLength === 0) this.begin();
    const object = this.#readHead(bytes, start, end);
    const walked = object < 0 ? object : this.#metadata.walk(bytes, object, end);
    if (walked < 0) return isOpaque;
    const stop = lineFeedIn(bytes, walked, end);
    if (!this.#take(bytes, start, stop < 0 ? end : stop)) return isOpaque;
    if (stop >= 0) return this.#endLine(bytes, object, stop) ? stop + 1 : isOpaque;
    this.continues(bytes, object, end);
    return needsMore;
  }

  /** Counts bytes[start, end) as part of the current line. Returns false if the line is too long. */
  #take(bytes: Buffer, start: number, end: number): boolean {
    this.#lineLength += end - start;
    if (end > start) this.#lastByte = bytes[end - 1] ?? 0;
    return this.#lineLength <= eventLimits.eventBytes;
  }

  protected override begin(): void {
    super.begin();
    this.#metadata.reset();
    this.#matchedOfHead = 0;
  }

  /**
   * Returns the position after the head (`headOf`); `end` if the head is incomplete; -1 if the line begins differently.
   */
  #readHead(bytes: Buffer, start: number, end: number): number {
    let matched = this.#matchedOfHead;
    if (matched === this.#head.length) return start;
    let head = this.#head;
    let here = start;
    for (; here < end && matched < head.length; here++) {
      const byte = bytes[here];
      if (matched === typeAt && byte !== head[matched]) head = this.#headBy(byte ?? 0);
      if (byte !== head[matched]) return -1;
      matched++;
    }
    this.#matchedOfHead = matched;
    this.#head = head;
    return here;
  }

  #headBy(letter: number): Buffer {
    const known = typesByLetter.get(letter);
    if (known !== undefined) this.type = known.type;
    return known?.head ?? anyHead;
  }

  /**
   * If keys are needed, a Table is also parsed as a whole, because the name of a Table's object is inside the Table's
   * row.
   */
  protected override get isParsedWhole(): boolean {
    return this.isRare || (this.keepsKeys && this.#metadata.name === "");
  }

  #endLine(bytes: Buffer, object: number, stop: number): boolean {
    if (this.#lastByte !== closingBrace) return false;
    this.#lineLength = 0;
    return this.complete(bytes, object, stop);
  }

  /** Parses the event's object. Drops the last byte, because that brace closes the event and not the object. */
  protected parse(whole: Buffer): Parsed | undefined {
    return parsedJson(whole.subarray(0, -1));
  }
}

function lineFeedIn(bytes: Buffer, start: number, end: number): number {
  if (end - start > shortBytes) {
    const found = bytes.indexOf(lineFeed, start);
    return found < end ? found : -1;
  }
  for (let here = start; here < end; here++) if (bytes[here] === lineFeed) return here;
  return -1;
}

/** Returns undefined if the text is not a JSON object. */
export function parsedJson(text: Buffer): Parsed | undefined {
  const object = parseJson(text.toString());
  if (!isRecord(object)) return undefined;
  // In a Table, the object's metadata is in the row (watch.md §2.2). The Table's own metadata is like a list's, and
  // does not name the object.
  const metadata = rowMetadataIn(object) ?? recordAt(object, "metadata");
  const name = textAt(metadata, "name");
  return {
    endsInitialEvents: textAt(recordAt(metadata, "annotations"), initialEventsEnd) === "true",
    code: typeof object["code"] === "number" ? object["code"] : 0,
    reason: textAt(object, "reason"),
    oldest: oldestIn(textAt(object, "message")),
    key: name === "" ? "" : `${textAt(metadata, "namespace")}/${name}`,
  };
}

/** Returns the metadata in a Table's first row. Checks apiVersion, because a custom resource may be called Table. */
function rowMetadataIn(object: JsonRecord): JsonRecord | undefined {
  const isTable = object["kind"] === "Table" && textAt(object, "apiVersion").startsWith("meta.k8s.io/");
  const rows = isTable ? object["rows"] : undefined;
  const row: unknown = Array.isArray(rows) ? rows[0] : undefined;
  return isRecord(row) ? recordAt(recordAt(row, "object"), "metadata") : undefined;
}
