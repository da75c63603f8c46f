/**
 * Requests a list of at most one object of a watched resource, with the identity of the watch's client, to read the
 * list's version. A consistent list also makes the apiserver ask etcd how far the cache of that resource must advance
 * (k8s.io/apiserver, storage/cacher: waitUntilFreshAndList, ConditionalProgressRequester).
 */
import type { Clock } from "../../base/clock.ts";
import type { Journal } from "../../events/journal.ts";
import { journalFault } from "../../events/journal.ts";
import type { Field } from "../../h2/core/field.ts";
import { ListVersion } from "../../kube/list-version.ts";
import type { RequestContext } from "../../upstream/context/request-context.ts";
import { Attempt, type AttemptOwner } from "../../upstream/pool/attempt.ts";
import type { PoolKey } from "../../upstream/pool/pool-key.ts";
import type { PoolSet } from "../../upstream/pool/pool-set.ts";
import { watchLimits } from "../limits.ts";
import { answerOf } from "../session/watch-context.ts";
import type { WatchSession } from "../session/watch-session.ts";

type ListQuestion = {
  readonly backend: string;
  readonly context: RequestContext;
  /** Creates the reader of the response's body; default: a reader that finds the version of a list. */
  readonly reading?: () => Pick<ListVersion, "feed" | "version">;
  /** Called exactly once, even if no response comes. */
  readonly onAnswer: (answer: ListAnswer) => void;
};

/**
 * The result of a list. `status`: 0 if no response came within `watchLimits.progressAnswerMs`. `version`: "" if the
 * list has none. `ms`: time from the request to this result.
 */
export type ListAnswer = { readonly status: number; readonly version: string; readonly ms: number };

type Watch = Pick<WatchSession, "poolKey" | "learnt">;

type ListRequestParts = { readonly clock: Clock; readonly journal: Journal };

/** Requests the list with the identity of the watch's client. */
export function listAs(
  watch: Watch,
  question: ListQuestion,
  parts: ListRequestParts & { readonly pools: PoolSet },
): void {
  new ListRequest(watch, question, parts).attempt.dial(parts.pools);
}

export class ListRequest implements AttemptOwner {
  readonly #watch: Watch;
  readonly #question: ListQuestion;
  readonly #parts: ListRequestParts;
  readonly #at: number;
  readonly #stopWaiting: () => void;
  readonly attempt: Attempt;
  #status = 0;
  #reading: Pick<ListVersion, "feed" | "version"> | undefined;
  #isOver = false;

  constructor(watch: Watch, question: ListQuestion, parts: ListRequestParts) {
    this.#watch = watch;
    this.#question = question;
    this.#parts = parts;
    this.#at = parts.clock.now();
    this.attempt = new Attempt(question.backend, this);
    this.#stopWaiting = parts.clock.after(watchLimits.progressAnswerMs, () => this.#end());
  }

  get context(): RequestContext {
    return this.#question.context;
  }

  poolKey(): PoolKey {
    return this.#watch.poolKey();
  }

  attemptHeaders(_attempt: Attempt, fields: Field[], end: boolean): void {
    const { status, contentType, contentEncoding } = answerOf(fields);
    if (status < 200) return;
    this.#status = status;
    if (status === 200)
      this.#reading = this.#question.reading?.() ?? new ListVersion(contentType, contentEncoding);
    if (end || status !== 200) this.#end();
  }

  attemptData(attempt: Attempt, bytes: Buffer, start: number, end: number, endStream: boolean): void {
    if (this.#isOver) return;
    attempt.up?.grant(end - start);
    this.#reading?.feed(bytes, start, end, endStream);
    if (endStream || this.#reading?.version !== "") this.#end();
  }

  attemptRefused(): void {
    this.#end();
  }

  attemptGone(): void {
    this.#end();
  }

  /** Ends the request, because a suspect backend would answer too late. */
  attemptSuspected(): void {
    this.#end();
  }

  attemptFaulted(error: unknown): void {
    journalFault(this.#parts.journal, error);
    this.#end();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopWaiting();
    this.attempt.cancel(this.#status > 0);
    if (this.#status > 0) this.#watch.learnt(this.#status);
    const ms = this.#parts.clock.now() - this.#at;
    this.#question.onAnswer({ status: this.#status, version: this.#reading?.version ?? "", ms });
  }
}
