/**
 * Reads the resource version that a write has created, from the write's response. With this version, the proxy can
 * measure how long after the write the watches deliver its event.
 */
import type { Clock } from "../../base/clock.ts";
import type { Field } from "../../h2/core/field.ts";
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
  #reading: ObjectVersion | undefined;

  constructor(clock: Clock, written: ResourceWrites) {
    this.#clock = clock;
    this.#writes = written;
    this.#newest = written.newest;
  }

  answered(_backend: string, head: readonly Field[]): boolean {
    const { status, contentType, contentEncoding } = answerOf(head);
    if ((status === 200 || status === 201) && contentEncoding === "")
      this.#reading = new ObjectVersion(contentType);
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
  return isDryRun ? undefined : new WriteTap(clock, written);
}

function writesVersion({ isResource, kind, verb, subresource }: RequestInfo): boolean {
  if (!writes.has(verb) || !isResource || kind !== "plain") return false;
  // Responses to other subresources, such as `binding`, contain another object, or no version.
  return subresource === "" || subresource === "status";
}
