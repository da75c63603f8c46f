/** Finds the resourceVersion of the object in a response while its bytes arrive. */
import { protobufVersion, versionField } from "../../kube/list-version.ts";
import { isVersion } from "../../kube/resource-version.ts";
import { JsonMetadata } from "./json-metadata.ts";

const KiB = 1024;

export const objectVersionLimits = {
  /** Maximum number of protobuf bytes before the version: a name, a prefix and a namespace, of 253 bytes each. */
  protobufBytes: 1 * KiB,
  /**
   * Maximum number of bytes of JSON that are searched. In a custom resource, `managedFields`, which can be long,
   * precedes the version.
   */
  jsonBytes: 64 * KiB,
} as const;

export class ObjectVersion {
  readonly #json: JsonMetadata | undefined;
  readonly #field: number;
  #head = Buffer.alloc(0);
  #left: number;
  /** The object's resourceVersion; "": not found yet, or the object has none. */
  version = "";

  /**
   * `contentType`: that of the response. Only objects in JSON and protobuf are searched. `field`: number of the protobuf
   * field in the metadata.
   */
  constructor(contentType: string, field: number = versionField.object) {
    this.#field = field;
    const isJson = contentType.startsWith("application/json");
    const isProtobuf = contentType.startsWith("application/vnd.kubernetes.protobuf");
    this.#json = isJson ? new JsonMetadata(false) : undefined;
    this.#left = isJson ? objectVersionLimits.jsonBytes : isProtobuf ? objectVersionLimits.protobufBytes : 0;
  }

  /** True if no more bytes are needed, because the version is found or cannot be found. */
  get isOver(): boolean {
    return this.version !== "" || this.#left === 0;
  }

  /** Takes the next bytes of the body, `bytes[start, end)`. */
  feed(bytes: Buffer, start: number, end: number): void {
    if (this.isOver) return;
    const until = Math.min(end, start + this.#left);
    this.#left -= until - start;
    if (this.#json === undefined) this.#feedProtobuf(bytes.subarray(start, until));
    else this.#feedJson(this.#json, bytes, start, until);
  }

  #feedJson(metadata: JsonMetadata, bytes: Buffer, start: number, end: number): void {
    const reached = metadata.walk(bytes, start, end);
    if (reached < 0 || metadata.isOver) this.#left = 0;
    this.version = metadata.version;
  }

  #feedProtobuf(bytes: Buffer): void {
    const head = this.#head.length === 0 ? bytes : Buffer.concat([this.#head, bytes]);
    const version = protobufVersion(head, this.#field);
    if (version !== undefined && isVersion(version)) this.version = version;
    else this.#head = Buffer.from(head);
  }
}
