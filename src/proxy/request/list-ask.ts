/**
 * One list of what a watch watches, with the watch's own identity and at most one object, of which only the version is
 * read. A consistent list makes the apiserver ask etcd for progress, for that resource's cache alone
 * (k8s.io/apiserver, storage/cacher: waitUntilFreshAndList, ConditionalProgressRequester).
 */
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import type { Field } from "../../h2/core/field.ts";
import { ListVersion } from "../../kube/list-version.ts";
import { answerOf } from "../../watch/session/watch-context.ts";
import type { Order } from "../context/order.ts";
import { Leg, type LegOwner } from "../upstream/leg.ts";
import type { PoolKey } from "../upstream/pool-key.ts";

export type ListAskParts = {
  readonly clock: Clock;
  readonly order: Order;
  readonly poolKey: () => PoolKey;
  /** Reads its body; left out: a list's version. */
  readonly reading?: () => Pick<ListVersion, "feed" | "version">;
  /** Called with a fault of ours. */
  readonly faulted: (error: unknown) => void;
  /** Called once. `status` 0: no answer within `limits.progressAnswerMs`. `version` "" unless the list said one. */
  readonly tell: (answer: { readonly status: number; readonly version: string; readonly ms: number }) => void;
};

export class ListAsk implements LegOwner {
  readonly #parts: ListAskParts;
  readonly #at: number;
  readonly #stopWaiting: () => void;
  readonly leg: Leg;
  #status = 0;
  #reading: Pick<ListVersion, "feed" | "version"> | undefined;
  #isOver = false;

  constructor(backend: string, parts: ListAskParts) {
    this.#parts = parts;
    this.#at = parts.clock.now();
    this.leg = new Leg(backend, this);
    this.#stopWaiting = parts.clock.after(limits.progressAnswerMs, () => this.#end());
  }

  get order(): Order {
    return this.#parts.order;
  }

  poolKey(): PoolKey {
    return this.#parts.poolKey();
  }

  legHeaders(_leg: Leg, fields: Field[], end: boolean): void {
    const { status, contentType, contentEncoding } = answerOf(fields);
    if (status < 200) return;
    this.#status = status;
    if (status === 200)
      this.#reading = this.#parts.reading?.() ?? new ListVersion(contentType, contentEncoding);
    if (end || status !== 200) this.#end();
  }

  legData(leg: Leg, bytes: Buffer, start: number, end: number, endStream: boolean): void {
    if (this.#isOver) return;
    leg.up?.grant(end - start);
    this.#reading?.feed(bytes, start, end, endStream);
    if (endStream || this.#reading?.version !== "") this.#end();
  }

  legRefused(): void {
    this.#end();
  }

  legGone(): void {
    this.#end();
  }

  /** Its backend is in doubt: nothing is worth waiting for there. */
  legSuspected(): void {
    this.#end();
  }

  legFaulted(error: unknown): void {
    this.#parts.faulted(error);
    this.#end();
  }

  legOpened(): void {}
  legSent(): void {}
  legPassed(): void {}

  legCleared(): void {}
  legLeaving(): void {}

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopWaiting();
    this.leg.cancel(this.#status > 0);
    const { clock, tell } = this.#parts;
    tell({ status: this.#status, version: this.#reading?.version ?? "", ms: clock.now() - this.#at });
  }
}
