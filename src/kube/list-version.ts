/**
 * Extracts the resourceVersion of a list while the proxy forwards it. Reads only the places where the apiserver writes
 * the version, because objects of users may contain similar text. Typed lists and Tables have the version in their
 * first bytes. Lists of custom resources have it in their last bytes, because their keys are sorted (watch.md §2.2).
 */
import { constants, gunzipSync } from "node:zlib";
import { isVersion } from "./resource-version.ts";

export const listLimits = {
  /** Number of bytes at the start of a body that are searched for the version. */
  listHeadBytes: 512,
  /** Number of bytes at the end of a body in JSON that are searched for the version. */
  listTailBytes: 512,
  /** Maximum number of bytes to which the start of a gzip body may decompress. */
  listUnzippedBytes: 1024 * 1024,
} as const;

/** Matches the start `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"…` of a list. */
const jsonHead =
  /^\{"kind":"[^"\\]*","apiVersion":"[^"\\]*","metadata":\{(?:"selfLink":"[^"\\]*",)?"resourceVersion":"(\d+)"/;
/** Matches a list's metadata at the end of the body. Only brackets may follow, so no object's metadata matches. */
const jsonTail =
  /,"kind":"[^"\\]*","metadata":\{(?:"continue":"[^"\\]*",)?(?:"remainingItemCount":\d+,)?"resourceVersion":"(\d+)"(?:,"selfLink":"[^"\\]*")?\}\}\s*$/;

export class ListVersion {
  readonly #isJson: boolean;
  readonly #isZipped: boolean;
  #head = Buffer.alloc(0);
  #tail = Buffer.alloc(0);
  #isHeadRead = false;
  /** The resourceVersion of the list; "": not found yet, or not in the list. */
  version = "";

  /** Both parameters are header values of the response; "": the header is absent. */
  constructor(contentType: string, contentEncoding: string) {
    this.#isJson = contentType.startsWith("application/json");
    this.#isZipped = contentEncoding === "gzip";
    const isKnown = this.#isJson || contentType.startsWith("application/vnd.kubernetes.protobuf");
    this.#isHeadRead = !isKnown || !(this.#isZipped || contentEncoding === "");
    if (this.#isHeadRead) this.#isJson = false;
  }

  get #isKnown(): boolean {
    return this.version !== "";
  }

  /** Takes the next bytes of the body, `bytes[start, end)`. `isLast`: the body ends with them. */
  feed(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.#isKnown) return;
    if (!this.#isHeadRead) this.#feedHead(bytes, start, end, isLast);
    if (this.#isJson && !this.#isZipped) this.#feedTail(bytes, start, end, isLast);
  }

  #feedTail(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    const from = Math.max(start, end - listLimits.listTailBytes);
    this.#tail = Buffer.concat([this.#tail, bytes.subarray(from, end)]).subarray(-listLimits.listTailBytes);
    if (isLast) this.#take(jsonTail.exec(this.#tail.toString("latin1"))?.[1]);
  }

  #feedHead(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    const room = listLimits.listHeadBytes - this.#head.length;
    this.#head = Buffer.concat([this.#head, bytes.subarray(start, Math.min(end, start + room))]);
    if (this.#head.length < listLimits.listHeadBytes && !isLast) return;
    this.#isHeadRead = true;
    const head = this.#isZipped ? unzipped(this.#head) : this.#head;
    this.#head = Buffer.alloc(0);
    this.#take(
      this.#isJson ? jsonHead.exec(head.toString("latin1"))?.[1] : protobufVersion(head, versionField.list),
    );
  }

  #take(version: string | undefined): void {
    if (version !== undefined && isVersion(version)) this.version ||= version;
  }
}

function unzipped(head: Buffer): Buffer {
  try {
    return gunzipSync(head, {
      finishFlush: constants.Z_SYNC_FLUSH,
      maxOutputLength: listLimits.listUnzippedBytes,
    });
  } catch {
    // The bytes are not valid gzip, or decompress to too many bytes.
    return Buffer.alloc(0);
  }
}

/** Protobuf field number of resourceVersion in the metadata of a list and of an object. */
export const versionField = { list: 2, object: 6 } as const;

/**
 * Returns the resourceVersion in a protobuf body; undefined if the bytes do not contain the whole version. The body is
 * `k8s\0`, Unknown { 1: TypeMeta, 2: raw object { 1: metadata { number: resourceVersion } } } (watch.md §2.3).
 */
export function protobufVersion(bytes: Buffer, number: number): string | undefined {
  if (bytes.toString("latin1", 0, 4) !== "k8s\0") return undefined;
  const raw = fieldIn(bytes, 4, bytes.length, 2);
  const meta = raw && fieldIn(bytes, raw.start, raw.end, 1);
  const version = meta && fieldIn(bytes, meta.start, meta.end, number);
  // If the version ends where `bytes` end, its last digits may be missing.
  if (version === undefined || version.end === bytes.length) return undefined;
  return bytes.toString("latin1", version.start, version.end);
}

export type Span = { readonly start: number; readonly end: number };

/**
 * Returns the position of the value of field `number`; undefined if it is missing, or behind a field that is not
 * length-delimited. If the value extends beyond `end`, its position ends at `end`.
 */
export function fieldIn(bytes: Buffer, start: number, end: number, number: number): Span | undefined {
  for (let at = start; at < end; ) {
    const tag = bytes[at] ?? 0;
    let length = 0;
    let scale = 1;
    let byte = 0x80;
    for (at += 1; at < end && byte >= 0x80; at += 1, scale *= 128) {
      byte = bytes[at] ?? 0;
      length += (byte % 0x80) * scale;
    }
    if (tag % 8 !== 2) return undefined;
    if (tag === number * 8 + 2) return { start: at, end: Math.min(end, at + length) };
    at += length;
  }
  return undefined;
}
