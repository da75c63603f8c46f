/**
 * The response that a client gets if no backend's response can be forwarded: a Kubernetes `Status`, which every client
 * library can display, or a reset. A reset says "not processed" only if that is certain (D17), because clients then
 * repeat even writes.
 */
import { Failure, type FailureCode } from "../../base/failure.ts";
import { Field } from "../../h2/core/field.ts";
import { errorCode, lost } from "../../h2/core/protocol-error.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import { statusJson } from "../../kube/status.ts";
import type { Attempt } from "../../upstream/pool/attempt.ts";

type Reply = { readonly status: number; readonly reason: string };

const replies: Record<FailureCode, Reply> = {
  "bad-request": { status: 400, reason: "BadRequest" },
  "client-certificate": { status: 403, reason: "Forbidden" },
  misdirected: { status: 421, reason: "BadRequest" },
  unauthenticated: { status: 401, reason: "Unauthorized" },
  "no-backend": { status: 503, reason: "ServiceUnavailable" },
  "unproven-identity": { status: 503, reason: "ServiceUnavailable" },
  "backend-refused": { status: 503, reason: "ServiceUnavailable" },
  "backend-lost": { status: 502, reason: "InternalError" },
  "backend-protocol": { status: 502, reason: "InternalError" },
  "client-lost": { status: 499, reason: "Unknown" },
  "outcome-unknown": { status: 504, reason: "Timeout" },
  overload: { status: 429, reason: "TooManyRequests" },
  limited: { status: 429, reason: "TooManyRequests" },
  "bad-file": { status: 500, reason: "InternalError" },
  draining: { status: 503, reason: "ServiceUnavailable" },
};

const none = Buffer.alloc(0);

/** Failures of requests that no backend has begun to process. The client may therefore repeat even a write. */
const untouched = new Set<FailureCode>([
  "no-backend",
  "unproven-identity",
  "backend-refused",
  "overload",
  "limited",
  "draining",
]);

/**
 * Sends the whole response, and returns its status. The response has Retry-After only if the request may be repeated:
 * client-go repeats any method on a 5xx with that field (client-go rest/with_retry.go), and a write of unknown outcome
 * must not be sent twice.
 */
export function sendLocalReply(side: StreamWriter, method: string, failure: Failure): number {
  const { status, fields, body } = localReplyTo(method, failure);
  const isBodiless = body.length === 0;
  side.sendHeaders(fields, isBodiless);
  if (!isBodiless) side.sendData(body, 0, body.length, true);
  return status;
}

/** Returns the whole response. A response to HEAD has no body. */
export function localReplyTo(
  method: string,
  failure: Failure,
): { readonly status: number; readonly fields: readonly Field[]; readonly body: Buffer } {
  const { status } = replies[failure.code];
  const mayRetry = untouched.has(failure.code);
  const body = Buffer.from(statusBody(failure, mayRetry));
  const fields = [
    new Field(":status", String(status)),
    new Field("content-type", "application/json"),
    new Field("cache-control", "no-cache, private"),
    new Field("content-length", String(body.length)),
  ];
  if (mayRetry) fields.push(new Field("retry-after", "1"));
  return { status, fields, body: method === "HEAD" ? none : body };
}

export function statusBody(failure: Failure, mayRetry: boolean): string {
  const { status, reason } = replies[failure.code];
  const details = mayRetry ? { retryAfterSeconds: 1 } : undefined;
  const message = `watchkeeper: ${failure.message}`;
  return statusJson({ message, reason, details, code: status });
}

/** Reset codes that Node's HTTP/2 client treats as the normal end of a response (nodejs/node 35209). */
const mistakable = new Set<number>([lost, errorCode.NO_ERROR, errorCode.CANCEL]);

/**
 * Returns the reset code for the client: `code`, or INTERNAL_ERROR if `code` would mislead the client about what
 * happened to the request. `mayHaveRun`: true if a backend may have begun to process the request.
 */
export function honestCode(code: number, mayHaveRun: boolean): number {
  const isUnseen = code === errorCode.REFUSED_STREAM;
  const isFalse = isUnseen ? mayHaveRun : mistakable.has(code);
  return isFalse ? errorCode.INTERNAL_ERROR : code;
}

/**
 * True if Go's transport sends a request of any method again after a reset with this code. Go's transport understands
 * REFUSED_STREAM, and PROTOCOL_ERROR from a peer (golang/go 47635), as "not processed" (x/net http2, `canRetryError`).
 */
function isSentAgain(code: number): boolean {
  return code === errorCode.REFUSED_STREAM || code === errorCode.PROTOCOL_ERROR;
}

/** Returns the failure for a request that must not be sent again, because a backend may have executed it. */
export function unknownOutcome(origin: "proxy" | "backend", what: string): Failure {
  return new Failure("outcome-unknown", origin, `${what}: whether the request was executed is unknown`);
}

/**
 * Returns the failure for a request that the proxy itself ended. If the request's method is safe, the failure is a 503
 * with Retry-After, after which client-go repeats the request. Otherwise the failure says that the outcome is unknown.
 */
export function failureOfCut(isSafe: boolean): Failure {
  const message = "The proxy ended this request before a response arrived";
  return isSafe ? new Failure("draining", "proxy", message) : unknownOutcome("proxy", message);
}

export function lostUnanswered(backend: string): Failure {
  return new Failure("backend-lost", "backend", `Backend ${backend} was lost before it answered`);
}

/**
 * Returns the failure for a response that violated a rule. A head above the proxy's limits counts as the proxy's own
 * refusal: an application behind the backend may have sent the head.
 */
export function malformedBy(backend: string, fault: string, code: number): Failure {
  const origin = code === errorCode.ENHANCE_YOUR_CALM ? "proxy" : "backend";
  return new Failure("backend-protocol", origin, `Backend ${backend} sent a malformed response: ${fault}`);
}

/**
 * Returns the failure that the client gets after its request was lost; undefined: the client's stream is reset with the
 * backend's code. `mayRunTwice`: true if the method is safe, or no backend has begun to process the request.
 */
export function failureOfLost(
  { backend, fault }: Pick<Attempt, "backend" | "fault">,
  code: number,
  mayRunTwice: boolean,
): Failure | undefined {
  // The client gets a Status, because the backend may have processed the request. After RST_STREAM(PROTOCOL_ERROR),
  // Go's transport would repeat the request, and an HTTP/1.1 client would get 400.
  if (fault !== undefined) return malformedBy(backend, fault, code);
  if (code === lost && mayRunTwice) return lostUnanswered(backend);
  if (code === lost) return unknownOutcome("backend", `Backend ${backend} was lost before it answered`);
  if (mayRunTwice || !isSentAgain(code)) return undefined;
  return unknownOutcome("backend", `Backend ${backend} reset the request before it answered`);
}
