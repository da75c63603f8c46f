/**
 * client-go's reflector as a server sees it. It lists or sends a watch-list, watches, and reacts to each kind of end as
 * client-go 0.36.1 was measured to do (watch.md §7).
 *
 *     listing --state whole--> watching --END, connection lost--> watching      at once
 *                                       --very short, RST, 410, 5xx--> listing  after a backoff: a relist
 */
import { mapOf, parseJson, textOf } from "../../../demo/objects/json.ts";
import { Backoff } from "./backoff.ts";
import type { Caller } from "./caller.ts";
import type { WatchEvent } from "./events.ts";
import { type Answer, PlainCall } from "./plain-call.ts";
import type { Interest } from "./truth.ts";
import { type Company, WatchCall, type WatchEnd, type WatchOrder } from "./watch-call.ts";

export type ReflectorOptions = {
  readonly interest: Interest;
  readonly isProtobuf: boolean;
  /** True if the watch begins with the initial events, as client-go does since 1.35. False: LIST and WATCH. */
  readonly usesWatchList: boolean;
  /** client-go picks 300 to 600 s. Shorter timeouts make more watches end within a run. */
  readonly timeoutSeconds: () => number;
};

const veryShortMs = 1_000;
const mostRetries = 10;
/**
 * After this status or ERROR code the reflector backs off and watches again from the same version, without a relist.
 */
const tooMany = 429;

export class Reflector {
  readonly #caller: Caller;
  readonly #company: Company;
  readonly #options: ReflectorOptions;
  readonly #backoff: Backoff;
  #usesWatchList: boolean;
  /** The version of each object by its key. */
  readonly store = new Map<string, number>();
  /** The initial events of a watch-list until they are complete: the version of each object by its key. */
  #coming: Map<string, number> | undefined;
  #version = "";
  #call: WatchCall | undefined;
  #retries = 0;
  #isStopped = false;
  /** Clock reading at which the reflector ends its own backoff. */
  waitsUntil = 0;

  constructor(caller: Caller, company: Company, options: ReflectorOptions) {
    this.#caller = caller;
    this.#company = company;
    this.#options = options;
    this.#backoff = new Backoff(caller.findings);
    this.#usesWatchList = options.usesWatchList;
  }

  get name(): string {
    return this.#caller.name;
  }

  get interest(): Interest {
    return this.#options.interest;
  }

  get call(): WatchCall | undefined {
    return this.#call;
  }

  start(): void {
    this.#list();
  }

  stop(): void {
    this.#isStopped = true;
    this.#call?.cancel();
  }

  // --- list ---

  #list(): void {
    if (this.#isStopped) return;
    if (this.#usesWatchList) return this.#watchList();
    // With resourceVersion=0, the first list and a list after a 410 accept any cached state. Other relists accept no
    // state that is older than the last version. After a 410 the real client-go requests the most recent state
    // (reflector.go).
    const { resource, namespace, app } = this.#options.interest;
    const collection =
      namespace === undefined ? `/api/v1/${resource}` : `/api/v1/namespaces/${namespace}/${resource}`;
    const selector = app === undefined ? "" : `&labelSelector=app%3D${app}`;
    const path = `${collection}?limit=500&resourceVersion=${this.#version === "" ? "0" : this.#version}${selector}`;
    const auditId = this.#caller.nextId();
    void new PlainCall(this.#caller, { method: "GET", path, accept: "application/json", auditId }, (answer) =>
      this.#listed(answer),
    );
  }

  #listed(answer: Answer): void {
    if (this.#isStopped) return;
    if (answer.status !== 200 || !answer.isWhole) {
      // After a 410 the next list names no version.
      if (answer.status === 410) this.#version = "";
      return this.#again(answer.retryAfterMs ?? this.#backoff.nextMs(), () => this.#list());
    }
    const list = mapOf(parseJson(answer.body));
    const items = Array.isArray(list["items"]) ? list["items"] : [];
    this.store.clear();
    for (const item of items) {
      const metadata = mapOf(mapOf(item)["metadata"]);
      this.store.set(
        `${textOf(metadata["namespace"])}/${textOf(metadata["name"])}`,
        Number(metadata["resourceVersion"]),
      );
    }
    this.#version = textOf(mapOf(list["metadata"])["resourceVersion"]);
    this.#watch();
  }

  #watchList(): void {
    this.#coming = new Map();
    this.#open({ ...this.#order(), beginning: { from: "state" }, atLeast: this.#version });
  }

  // --- watch ---

  #watch(): void {
    if (this.#isStopped) return;
    this.#open({ ...this.#order(), beginning: { from: "version", version: Number(this.#version) } });
  }

  #order(): Omit<WatchOrder, "beginning"> {
    const { interest, isProtobuf, timeoutSeconds } = this.#options;
    return { interest, isProtobuf, wantsBookmarks: true, timeoutSeconds: timeoutSeconds() };
  }

  #open(order: WatchOrder): void {
    this.#call = new WatchCall(this.#caller, this.#company, order, {
      event: (event) => this.#event(event),
      over: (call, end) => this.#over(call, end),
    });
  }

  #event(event: WatchEvent): void {
    const state = this.#coming ?? this.store;
    this.#retries = 0;
    if (event.type === "DELETED") state.delete(event.key);
    else if (event.type !== "BOOKMARK") state.set(event.key, event.version);
    if (event.isInitialEnd && this.#coming !== undefined) {
      this.store.clear();
      for (const [key, version] of this.#coming) this.store.set(key, version);
      this.#coming = undefined;
    }
    // client-go keeps the version of the last event, even if an earlier event had a higher one.
    if (this.#coming === undefined) this.#version = String(event.version);
  }

  #over(call: WatchCall, end: WatchEnd): void {
    if (this.#isStopped) return;
    this.#call = undefined;
    const isListing = this.#coming !== undefined;
    this.#coming = undefined;
    if (isListing) return this.#listingOver(end);
    switch (end.kind) {
      case "end":
        return this.#ended(call);
      case "lost":
        return call.isAnswered ? this.#watch() : this.#unanswered();
      case "reset":
        return this.#relist("reset");
      case "error":
        return this.#refused(end.code, undefined);
      case "refused":
        return this.#refused(end.status, end.retryAfterMs);
      default:
        end satisfies never;
    }
  }

  /**
   * A watch-list ended during its initial events. After END_STREAM the client sends it again at once. After a reset or
   * an unexpected code the client changes to LIST and WATCH.
   */
  #listingOver(end: WatchEnd): void {
    this.#caller.findings.count(`watch-list again: ${end.kind}`);
    const code = end.kind === "error" ? end.code : end.kind === "refused" ? end.status : 0;
    const retryAfterMs = end.kind === "refused" ? end.retryAfterMs : undefined;
    if (end.kind === "end") return this.#again(0, () => this.#list());
    if (end.kind === "reset" || ![0, 410, tooMany, 504].includes(code)) this.#usesWatchList = false;
    this.#again(retryAfterMs ?? this.#backoff.nextMs(), () => this.#list());
  }

  #ended(call: WatchCall): void {
    const isVeryShort =
      call.events === 0 && this.#caller.findings.world.now() - call.countedSince < veryShortMs;
    if (isVeryShort) this.#relist("very short watch");
    else this.#again(0, () => this.#watch());
  }

  /**
   * The connection was lost before the response. client-go tries ten more times, one second apart, and then relists.
   */
  #unanswered(): void {
    this.#retries += 1;
    if (this.#retries > mostRetries) return this.#relist("no answer");
    this.#again(1_000, () => this.#watch());
  }

  #refused(code: number, retryAfterMs: number | undefined): void {
    const mayRetry =
      retryAfterMs !== undefined && (code === tooMany || code >= 500) && this.#retries < mostRetries;
    if (mayRetry) {
      this.#retries += 1;
      this.#again(retryAfterMs, () => this.#watch());
    } else if (code === tooMany) this.#again(this.#backoff.nextMs(), () => this.#watch());
    else this.#relist(String(code));
  }

  #relist(reason: string): void {
    this.#caller.findings.count(`relist: ${reason}`);
    this.#caller.findings.tell(() => `${this.name} relists: ${reason}`);
    this.#retries = 0;
    if (reason === "410") this.#version = "";
    this.#again(this.#backoff.nextMs(), () => this.#list());
  }

  #again(ms: number, what: () => void): void {
    const { world } = this.#caller.findings;
    this.waitsUntil = world.now() + ms;
    world.after(ms, () => {
      if (!this.#isStopped) what();
    });
  }
}
