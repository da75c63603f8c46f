/**
 * Reads the resource version that a write has created, from the write's response. With this version, the proxy can
 * measure how long after the write the watches deliver its event.
 */
import type { Clock } from "../../base/clock.ts";
import type { Field } from "../../h2/core/field.ts";
import { versionField } from "../../kube/list-version.ts";
import { firstValue, queryOf } from "../../kube/query.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import type { CacheTracker } from "../../watch/cache/cache-progress.ts";
import type { ResourceWrites } from "../../watch/cache/write-delays.ts";
import { ObjectVersion } from "../../watch/codec/object-version.ts";
import { answerOf, resourceKey } from "../../watch/session/watch-context.ts";
import type { ClassifiedRequest } from "./stale-read-guard.ts";

const writes: ReadonlySet<string> = new Set(["create", "update", "patch"]);

export class WriteTap {
  readonly #clock: Clock;
  readonly #writes: ResourceWrites;
  /** The newest resource version of this resource that the proxy knew of when the request was sent. */
  readonly #newest: string;
  readonly #field: number;
  #reading: ObjectVersion | undefined;

  /** `field`: number of the version's protobuf field in the metadata of the response. */
  constructor(clock: Clock, written: ResourceWrites, field: number) {
    this.#clock = clock;
    this.#field = field;
    this.#writes = written;
    this.#newest = written.newest;
  }

  answered(_backend: string, head: readonly Field[]): boolean {
    const { status, contentType, contentEncoding } = answerOf(head);
    if ((status === 200 || status === 201) && contentEncoding === "")
      this.#reading = new ObjectVersion(contentType, this.#field);
    return false;
  }

  /** Searches the forwarded bytes for the object's resource version. */
  read(bytes: Buffer, start: number, end: number): void {
    const reading = this.#reading;
    if (reading === undefined) return;
    reading.feed(bytes, start, end);
    if (reading.version !== "") this.#writes.wrote(reading.version, this.#newest, this.#clock.now());
    if (reading.isOver) this.#reading = undefined;
  }
}

/**
 * Returns a tap for the write's response; undefined if the write creates no resource version, or if the proxy's watches
 * get no event for the written object.
 */
export function writeTapFor(
  { clock, caches }: { readonly clock: Clock; readonly caches: CacheTracker },
  { info, target }: Pick<ClassifiedRequest, "info" | "target">,
  isBodiless: boolean,
): WriteTap | undefined {
  if (isBodiless || !writesVersion(info)) return undefined;
  const written = caches.writeDelays.writesTo(resourceKey(info));
  if (written?.isWatched !== true) return undefined;
  const isDryRun = firstValue(queryOf(target), "dryRun") !== undefined;
  const field = isOfPod(info) ? versionField.list : versionField.object;
  return isDryRun ? undefined : new WriteTap(clock, written, field);
}

function writesVersion(info: RequestInfo): boolean {
  const { isResource, kind, verb, subresource } = info;
  if (!writes.has(verb) || !isResource || kind !== "plain") return false;
  // Responses to most other subresources contain another object, or no version.
  return subresource === "" || subresource === "status" || isOfPod(info);
}

/**
 * True if the response is a Status whose metadata has the pod's new version, since Kubernetes 1.38. A Status has the
 * metadata of a list. Before, its metadata is empty.
 */
function isOfPod({ group, resource, subresource }: RequestInfo): boolean {
  return group === "" && resource === "pods" && (subresource === "binding" || subresource === "eviction");
}
