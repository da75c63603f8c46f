/**
 * Serves one watch. First sends the existing objects, or the changes since the requested version. Then sends every
 * change as it is written, and a bookmark every minute, until the deadline. Timing and order are those measured on
 * kube-apiserver 1.36.
 */
import type { Clock } from "../../src/base/clock.ts";
import { type Form, renderObject } from "../objects/form.ts";
import type { JsonMap, KubeObject } from "../objects/json.ts";
import { apiVersionOf } from "../objects/resources.ts";
import { expired, type Refusal, tooLargeVersion } from "../objects/status.ts";
import type { Change, Source } from "../objects/store.ts";
import type { Answer } from "./ask.ts";
import type { WatchRequest } from "./watch-request.ts";

const bookmarkMs = 60_000;
/**
 * Milliseconds from the last bookmark to the watch's deadline. This bookmark lets the client start its next watch from
 * a recent version.
 */
const lastBookmarkMs = 2_000;

/** Encodes one event. The default, `encodeJson`, makes a line of JSON. */
export type Encode = (type: string, object: JsonMap) => Buffer;

export const encodeJson: Encode = (type, object) => Buffer.from(`${JSON.stringify({ type, object })}\n`);

type Parts = {
  readonly request: WatchRequest;
  readonly form: Form;
  readonly encode: Encode;
  readonly answer: Answer;
  readonly source: Source;
  /**
   * False for resources whose watches get no periodic bookmarks, such as `events`. Real apiservers serve these from
   * etcd.
   */
  readonly hasPeriodicBookmarks: boolean;
  /** The watch is ended when more than this many bytes wait for the client. */
  readonly mostQueuedBytes: number;
  readonly clock: Clock;
  readonly timeoutMs: number;
};

export class WatchStream {
  readonly #parts: Parts;
  readonly #onStop: () => void;
  /**
   * Version from which the watch started. Only later changes are sent. No bookmark is sent before the first of these
   * changes.
   */
  #start = 0;
  #hasSentColumns = false;
  #stops = new Set<() => void>();

  /** Creates the stream of one watch. `onStop`: called when the watch ends, for any reason. */
  constructor(parts: Parts, onStop: () => void) {
    this.#parts = parts;
    this.#onStop = onStop;
  }

  /** Sends events until the deadline, or until `end()` or `stop()`. The response's head must have been sent already. */
  start(): void {
    const refusal = this.#open();
    if (refusal !== undefined) this.#send("ERROR", refusal.status);
    // A watch with a negative timeoutSeconds ends at once, without an event.
    if (refusal !== undefined || this.#parts.timeoutMs <= 0) this.end();
    else this.#live();
  }

  end(): void {
    this.stop();
    this.#parts.answer.end();
  }

  /** Stops without ending the response. Called after the client has disconnected. */
  stop(): void {
    for (const stop of this.#stops) stop();
    this.#stops.clear();
    this.#onStop();
  }

  /** The version up to which the source has all changes of the watched resource. */
  get #revision(): number {
    const { source, request } = this.#parts;
    return source.revisionOf(request.target.resource.plural);
  }

  #open(): Refusal | undefined {
    const { source, request } = this.#parts;
    const { start, target } = request;
    if (start.from === "version") {
      this.#start = start.version;
      const missed = source.since(target.resource.plural, start.version);
      if (missed === undefined) return expired(start.version, source.oldest);
      for (const change of missed) this.#change(change);
      return undefined;
    }
    const revision = this.#revision;
    this.#start = revision;
    if (start.from === "now") return undefined;
    if (start.atLeast > revision) return tooLargeVersion(start.atLeast, revision);
    for (const object of source.list(target.resource.plural, target.namespace))
      if (request.matches(object)) this.#event("ADDED", object);
    if (request.marksInitialEnd) this.#bookmark({ "k8s.io/initial-events-end": "true" });
    return undefined;
  }

  #live(): void {
    const { source, clock, request, timeoutMs, hasPeriodicBookmarks } = this.#parts;
    this.#stops.add(source.subscribe((change) => this.#commit(change)));
    this.#stops.add(clock.after(timeoutMs, () => this.end()));
    if (!request.wantsBookmarks || !hasPeriodicBookmarks) return;
    this.#bookmarkEach(bookmarkMs);
    if (timeoutMs > lastBookmarkMs)
      this.#stops.add(clock.after(timeoutMs - lastBookmarkMs, () => this.#bookmarkIfChanged()));
  }

  #bookmarkEach(periodMs: number): void {
    const cancel = this.#parts.clock.after(periodMs, () => {
      this.#stops.delete(cancel);
      this.#bookmarkIfChanged();
      this.#bookmarkEach(periodMs);
    });
    this.#stops.add(cancel);
  }

  #commit(change: Change): void {
    this.#change(change);
    // Ends a watch that is too far behind, as a real apiserver does, because a watch must never skip an event.
    if (this.#parts.answer.queued() > this.#parts.mostQueuedBytes) this.end();
  }

  #bookmarkIfChanged(): void {
    if (this.#revision > this.#start) this.#bookmark();
  }

  #change({ type, resource, version, object, previous }: Change): void {
    const { target, matches } = this.#parts.request;
    if (version <= this.#start || resource !== target.resource.plural) return;
    if (target.namespace !== undefined && object.metadata.namespace !== target.namespace) return;
    const was = previous !== undefined && matches(previous);
    const is = type !== "DELETED" && matches(object);
    if (is) this.#event(was ? "MODIFIED" : "ADDED", object);
    // The object no longer matches the selector, so the event has the previous object with the new version.
    else if (was) this.#event("DELETED", withVersion(previous, object.metadata.resourceVersion));
  }

  #event(type: string, object: KubeObject): void {
    const { request, form, clock } = this.#parts;
    const rendering = { resource: request.target.resource, form, wallMs: clock.wall() };
    this.#send(type, renderObject(object, rendering, !this.#hasSentColumns));
    this.#hasSentColumns = true;
  }

  #bookmark(annotations?: JsonMap): void {
    const { resource } = this.#parts.request.target;
    const metadata = {
      resourceVersion: String(this.#revision),
      ...(annotations === undefined ? {} : { annotations }),
    };
    const object = { kind: resource.kind, apiVersion: apiVersionOf(resource), metadata };
    this.#send("BOOKMARK", this.#parts.form === "table" ? this.#bookmarkTable(object) : object);
  }

  #bookmarkTable(object: JsonMap): JsonMap {
    return {
      kind: "Table",
      apiVersion: "meta.k8s.io/v1",
      metadata: { resourceVersion: String(this.#revision) },
      columnDefinitions: null,
      rows: [{ cells: [], object }],
    };
  }

  #send(type: string, object: JsonMap): void {
    this.#parts.answer.write(this.#parts.encode(type, object));
  }
}

function withVersion(object: KubeObject, resourceVersion: string): KubeObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion } };
}
