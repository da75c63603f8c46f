/**
 * Holds a response back until it is known whether the client gets it.
 *
 * A refusal (429, 5xx, or a 404 that may mean a missing API) is held while another backend may give a better response.
 * A short refusal is held until it is complete, because its backend may be lost before that. A longer refusal gets no
 * flow-control credit, so the stream's window limits the held bytes.
 *
 * The body of a read's response is held until it is complete, for the same reason, up to `heldBodyBytes`. A discovery
 * or OpenAPI document is held up to `heldDocumentBytes`, which exceeds the stream's window. So the backend gets
 * flow-control credit for a document before the client has got the bytes.
 */

import type { Clock } from "../../base/clock.ts";
import { AccountedBuffer, type Buffered } from "../../h2/core/buffered.ts";
import { type Field, role } from "../../h2/core/field.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import { reasonIn } from "../../kube/status.ts";
import type { RequestContext } from "../../upstream/context/request-context.ts";
import type { Attempt } from "../../upstream/pool/attempt.ts";
import { requestLimits } from "./limits.ts";

/**
 * Matches the bodies of the router's 404s that are no Status in JSON or protobuf: the text for an unknown group or
 * version until Kubernetes 1.37 (k8s.io/apiserver, server/handler.go), and the message of a Status in CBOR.
 */
const ofRouter = /^404 page not found|the server could not find the requested resource/;

/**
 * Matches kube-aggregator's text about a server that it cannot reach (apimachinery, util/proxy/upgradeaware.go). Its
 * other text, "service unavailable", is not matched, because it follows from the status of the APIService, which all
 * apiservers share.
 */
const ofAggregator = /^error trying to reach service: /;

const noReason = { reason: "", name: "" };

export class HeldResponse {
  readonly attempt: Attempt;
  readonly head: Field[];
  readonly #body: AccountedBuffer;
  #trailers: Field[] | undefined;
  #isWhole: boolean;

  constructor(attempt: Attempt, head: Field[], end: boolean, buffered: Buffered) {
    this.attempt = attempt;
    this.head = head;
    this.#isWhole = end;
    this.#body = new AccountedBuffer(buffered);
  }

  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** True if it can be decided now whether the response is forwarded. */
  get isDue(): boolean {
    return this.#isWhole;
  }

  get heldBytes(): number {
    return this.#body.length;
  }

  /**
   * "no-route": the apiserver's router sent the response, because it has no route for the path. "no-object": the
   * apiserver serves the path, but the object does not exist. "unreachable": the apiserver cannot reach the server of an
   * aggregated API. "": none of these.
   */
  get complaint(): "no-route" | "no-object" | "unreachable" | "" {
    const status = this.head[0]?.value;
    if (status !== "503" && status !== "404") return "";
    const body = this.#body.joined();
    if (status === "503") return ofAggregator.test(body.toString("latin1")) ? "unreachable" : "";
    const { reason, name } = reasonIn(body) ?? noReason;
    // The router knows no object. The text of its message has changed with Kubernetes 1.38.
    if (reason === "NotFound") return name === "" ? "no-route" : "no-object";
    return ofRouter.test(body.toString("latin1")) ? "no-route" : "";
  }

  keep(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    this.#body.add(bytes, start, end);
    if (endStream) this.#isWhole = true;
  }

  endWith(trailers: Field[]): void {
    this.#trailers = trailers;
    this.#isWhole = true;
  }

  /** Forwards the held response after all. The stream's later frames are forwarded as they arrive. */
  passOn(to: { headers(fields: Field[], end: boolean): void; data(body: Buffer, end: boolean): void }): void {
    const trailers = this.#trailers;
    const isWithoutTrailers = this.#isWhole && trailers === undefined;
    try {
      to.headers(this.head, isWithoutTrailers && this.#body.length === 0);
      this.#body.moveTo((body, isLast) => to.data(body, isLast && isWithoutTrailers));
    } finally {
      // After an internal error, the exchange does not know this response any more, and would not drop it.
      this.#body.drop();
    }
    if (trailers !== undefined) to.headers(trailers, true);
  }

  forget(): void {
    this.#body.drop();
  }
}

const noWait = (): void => {};

/** The body of a read's response. */
export class HeldBody extends HeldResponse {
  readonly #mostBytes: number;
  readonly #isDocument: boolean;
  readonly #buffered: Buffered;
  /** Number of bytes not yet sent to the client for which the backend already has flow-control credit. */
  #creditedBytes = 0;
  #stopWaiting = noWait;

  /** `head`: the attempt's response head, which this object takes over from the attempt. */
  constructor(attempt: Attempt, head: Field[], buffered: Buffered, mostBytes: number) {
    super(attempt, head, false, buffered);
    attempt.takeHead();
    this.#isDocument = mostBytes > requestLimits.heldBodyBytes;
    this.#buffered = buffered;
    this.#mostBytes = mostBytes;
  }

  override keep(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    super.keep(bytes, start, end, endStream);
    if (!this.#isDocument) return;
    this.attempt.up?.grant(end - start);
    this.#creditedBytes += end - start;
  }

  /**
   * Returns how much flow-control credit the backend gets for `count` bytes that have just been sent to the client. The
   * backend has already got the credit for some of these bytes.
   */
  creditFor(count: number): number {
    const credited = Math.min(count, this.#creditedBytes);
    this.#creditedBytes -= credited;
    return count - credited;
  }

  /**
   * Calls `forward` if the body is not complete after `heldBodyMs`. Continues to wait while the backend is suspect,
   * because in that case the request was also sent to another backend, which may answer. `forget` and `passOn` end the
   * wait.
   */
  forwardWhenLate(clock: Clock, forward: () => void): void {
    this.#stopWaiting = clock.after(requestLimits.heldBodyMs, () =>
      this.attempt.isSuspect ? this.forwardWhenLate(clock, forward) : forward(),
    );
  }

  override passOn(to: Parameters<HeldResponse["passOn"]>[0]): void {
    this.#stopWaiting();
    super.passOn(to);
  }

  override forget(): void {
    this.#stopWaiting();
    super.forget();
  }

  override get isDue(): boolean {
    return this.isWhole || this.heldBytes > this.#mostBytes || this.#buffered.isTight;
  }
}

const documents = /^\/(?:apis?|openapi)(?:[/?]|$)/;

/** What a response answers. */
type Answered = { readonly info: RequestInfo; readonly context: Pick<RequestContext, "target"> };

/**
 * Begins to hold the body of the attempt's response, whose head is kept. Returns undefined if the body is forwarded as
 * it arrives: the status is not 200, the body is known to be too long, or memory is short.
 */
export function holdBody(attempt: Attempt, to: Answered, buffered: Buffered): HeldBody | undefined {
  const head = attempt.keptHead;
  if (head?.[0]?.value !== "200" || buffered.isTight) return undefined;
  const mostBytes = mostBodyBytes(to);
  const length = head.find((field) => field.role === role.contentLength);
  if (length !== undefined && Number(length.value) > mostBytes) return undefined;
  return new HeldBody(attempt, head, buffered, mostBytes);
}

function mostBodyBytes({ info, context }: Answered): number {
  const path = info.isResource ? "" : context.target;
  return documents.test(path) ? requestLimits.heldDocumentBytes : requestLimits.heldBodyBytes;
}

/**
 * True for a status that an overloaded, faulty or draining backend sends (429 or 5xx). Another backend may give a
 * better response.
 */
export function isRefusal(status: number): boolean {
  return status === 429 || status >= 500;
}

/** True if the head has a content-length that is small enough to hold the whole response. */
export function isShort(head: readonly Field[]): boolean {
  const length = head.find((field) => field.role === role.contentLength);
  return length !== undefined && Number(length.value) <= requestLimits.shortRefusalBytes;
}

/**
 * True if an apiserver that is shutting down refused the request before executing it. Only its 503 (k8s.io/apiserver,
 * waitgroup.go) has Retry-After and nosniff. The 429 of `--shutdown-send-retry-after` (with_retry_after.go) looks like
 * that of an overloaded apiserver, but comes with a GOAWAY (`isGoing`).
 */
export function isShutdown(head: readonly Field[], isGoing: boolean): boolean {
  const has = (name: string, value: string): boolean =>
    head.some((field) => field.name === name && field.value.startsWith(value));
  const status = head[0]?.value;
  if (!has("retry-after", "") || !has("x-content-type-options", "nosniff")) return false;
  if (status === "503") return has("content-type", "application/json");
  return status === "429" && isGoing && has("content-type", "text/plain");
}
