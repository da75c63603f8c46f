/**
 * The resourceVersion of a list, read in passing: where the apiserver writes it and nowhere else, never by searching
 * what a user may have stored. Typed lists and Tables have it within their first octets, lists of custom resources,
 * whose keys are sorted, within their last (watch.md §2.2).
 */
import { constants, gunzipSync } from "node:zlib";
import { limits } from "../base/limits.ts";
import { isVersion } from "./resource-version.ts";

/** `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"…`: only our apiserver's own words come before. */
const jsonHead =
  /^\{"kind":"[^"\\]*","apiVersion":"[^"\\]*","metadata":\{(?:"selfLink":"[^"\\]*",)?"resourceVersion":"(\d+)"/;
/** From the end backwards nothing but the list's own closing brackets can follow its own metadata. */
const jsonTail =
  /,"kind":"[^"\\]*","metadata":\{(?:"continue":"[^"\\]*",)?(?:"remainingItemCount":\d+,)?"resourceVersion":"(\d+)"(?:,"selfLink":"[^"\\]*")?\}\}\s*$/;

export class ListVersion {
  readonly #isJson: boolean;
  readonly #isZipped: boolean;
  #head = Buffer.alloc(0);
  #tail = Buffer.alloc(0);
  #isHeadRead = false;
  /** "" until it is known; for ever when it cannot be. */
  version = "";

  /** Of the answer's head, "" when absent. */
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

  /** `bytes[start, end)` are the next of its body, and with `isLast` the last. */
  feed(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.#isKnown) return;
    if (!this.#isHeadRead) this.#feedHead(bytes, start, end, isLast);
    if (this.#isJson && !this.#isZipped) this.#feedTail(bytes, start, end, isLast);
  }

  #feedTail(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    const from = Math.max(start, end - limits.listTailBytes);
    this.#tail = Buffer.concat([this.#tail, bytes.subarray(from, end)]).subarray(-limits.listTailBytes);
    if (isLast) this.#take(jsonTail.exec(this.#tail.toString("latin1"))?.[1]);
  }

  #feedHead(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    const room = limits.listHeadBytes - this.#head.length;
    this.#head = Buffer.concat([this.#head, bytes.subarray(start, Math.min(end, start + room))]);
    if (this.#head.length < limits.listHeadBytes && !isLast) return;
    this.#isHeadRead = true;
    const head = this.#isZipped ? unzipped(this.#head) : this.#head;
    this.#head = Buffer.alloc(0);
    this.#take(this.#isJson ? jsonHead.exec(head.toString("latin1"))?.[1] : protobufVersion(head));
  }

  #take(version: string | undefined): void {
    if (version !== undefined && isVersion(version)) this.version ||= version;
  }
}

/** The beginning of what a beginning was packed from; nothing when it cannot be unpacked. */
function unzipped(head: Buffer): Buffer {
  try {
    return gunzipSync(head, {
      finishFlush: constants.Z_SYNC_FLUSH,
      maxOutputLength: limits.listUnzippedBytes,
    });
  } catch {
    // Not gzip, or one that unpacks to far more than a list's beginning: it is only observed, and goes on as it is.
    return Buffer.alloc(0);
  }
}

/** `k8s\0`, Unknown { 1: TypeMeta, 2: raw list { 1: ListMeta { 2: resourceVersion } } } (watch.md §2.3). */
function protobufVersion(bytes: Buffer): string | undefined {
  if (bytes.toString("latin1", 0, 4) !== "k8s\0") return undefined;
  const raw = fieldIn(bytes, 4, bytes.length, 2);
  const meta = raw && fieldIn(bytes, raw.start, raw.end, 1);
  const version = meta && fieldIn(bytes, meta.start, meta.end, 2);
  // One that reaches the end may be cut off, and would pass for an older one.
  if (version === undefined || version.end === bytes.length) return undefined;
  return bytes.toString("latin1", version.start, version.end);
}

type Span = { readonly start: number; readonly end: number };

/** A length-delimited field, of a message that has no others up to there; one that is cut off ends with the bytes. */
function fieldIn(bytes: Buffer, start: number, end: number, number: number): Span | undefined {
  for (let at = start; at < end; ) {
    const tag = bytes[at] ?? 0;
    let length = 0;
    let scale = 1;
    let octet = 0x80;
    for (at += 1; at < end && octet >= 0x80; at += 1, scale *= 128) {
      octet = bytes[at] ?? 0;
      length += (octet % 0x80) * scale;
    }
    if (tag % 8 !== 2) return undefined;
    if (tag === number * 8 + 2) return { start: at, end: Math.min(end, at + length) };
    at += length;
  }
  return undefined;
}
