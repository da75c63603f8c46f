/**
 * Serves one watch: first the state or the history, then every change as it is committed, a bookmark every minute, and
 * the end at the deadline. Timing and order are those measured on kube-apiserver 1.36.
 */
import type { Clock } from "../../base/clock.ts";
import { type Form, renderObject } from "../objects/form.ts";
import type { JsonMap, KubeObject } from "../objects/json.ts";
import { apiVersionOf } from "../objects/resources.ts";
import { expired, type Refusal, tooLargeVersion } from "../objects/status.ts";
import type { Change, Source } from "../objects/store.ts";
import type { Answer } from "./ask.ts";
import type { WatchRequest } from "./watch-request.ts";

const bookmarkMs = 60_000;
/** Time between the last bookmark and the deadline. The client's next watch then starts from a recent version. */
const lastBookmarkMs = 2_000;

/** Encodes one event. The default is a line of JSON. */
export type Encode = (type: string, object: JsonMap) => Buffer;

export const encodeJson: Encode = (type, object) => Buffer.from(`${JSON.stringify({ type, object })}\n`);

type Parts = {
  readonly request: WatchRequest;
  readonly form: Form;
  readonly encode: Encode;
  readonly answer: Answer;
  readonly source: Source;
  /** False for resources that real apiservers serve from etcd itself, such as `events`. */
  readonly hasPeriodicBookmarks: boolean;
  /** The watch is ended if more bytes than this wait for its client. */
  readonly mostQueuedBytes: number;
  readonly clock: Clock;
  readonly timeoutMs: number;
};

export class WatchStream {
  readonly #parts: Parts;
  readonly #onStop: () => void;
  /** Version that the watch started at: only later changes are sent, and bookmarks only after one. */
  #start = 0;
  #hasSentColumns = false;
  #stops = new Set<() => void>();

  /** `onStop` runs when the watch ends, for any reason. */
  constructor(parts: Parts, onStop: () => void) {
    this.#parts = parts;
    this.#onStop = onStop;
  }

  /** Sends events until the deadline, `end()` or `stop()`. The head of the response must have been sent. */
  start(): void {
    const refusal = this.#open();
    if (refusal !== undefined) this.#send("ERROR", refusal.status);
    // With a negative timeoutSeconds the stream is empty.
    if (refusal !== undefined || this.#parts.timeoutMs <= 0) this.end();
    else this.#live();
  }

  /** Ends the response between two events. */
  end(): void {
    this.stop();
    this.#parts.answer.end();
  }

  /** Stops without ending the response, because the client has disconnected. */
  stop(): void {
    for (const stop of this.#stops) stop();
    this.#stops.clear();
    this.#onStop();
  }

  /** Version up to which the source knows the watched resource. */
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
      this.#stops.add(clock.after(timeoutMs - lastBookmarkMs, () => this.#progress()));
  }

  #bookmarkEach(periodMs: number): void {
    const cancel = this.#parts.clock.after(periodMs, () => {
      this.#stops.delete(cancel);
      this.#progress();
      this.#bookmarkEach(periodMs);
    });
    this.#stops.add(cancel);
  }

  #commit(change: Change): void {
    this.#change(change);
    // A watch that is too far behind is ended, as real apiservers do: a watch never skips an event.
    if (this.#parts.answer.queued() > this.#parts.mostQueuedBytes) this.end();
  }

  /** Sends a bookmark, unless the resource has not changed since the watch started. */
  #progress(): void {
    if (this.#revision > this.#start) this.#bookmark();
  }

  #change({ type, resource, version, object, previous }: Change): void {
    const { target, matches } = this.#parts.request;
    if (version <= this.#start || resource !== target.resource.plural) return;
    if (target.namespace !== undefined && object.metadata.namespace !== target.namespace) return;
    const was = previous !== undefined && matches(previous);
    const is = type !== "DELETED" && matches(object);
    if (is) this.#event(was ? "MODIFIED" : "ADDED", object);
    // An object that leaves the selector is sent as it was before, with the version at which it left.
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
