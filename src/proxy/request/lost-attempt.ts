/** What a client gets for a lost attempt. "Not processed" only if that is certain (D17): clients repeat writes after it. */
import { Failure } from "../../base/failure.ts";
import { errorCode, lost } from "../../h2/core/protocol-error.ts";
import type { Attempt } from "../upstream/attempt.ts";

/** Node's client takes NO_ERROR and CANCEL for an orderly end (nodejs/node 35209). */
const mistakable = new Set<number>([lost, errorCode.NO_ERROR, errorCode.CANCEL]);

/** Returns the reset code that describes what the backend did. `mayHaveRun`: it may have begun with the request. */
export function honestCode(code: number, mayHaveRun: boolean): number {
  const isUnseen = code === errorCode.REFUSED_STREAM;
  const isFalse = isUnseen ? mayHaveRun : mistakable.has(code);
  return isFalse ? errorCode.INTERNAL_ERROR : code;
}

/**
 * True if Go's transport repeats the request after a reset with this code, whatever its method is: x/net http2
 * `canRetryError` takes REFUSED_STREAM, and PROTOCOL_ERROR from a peer (golang/go 47635), for "not processed".
 */
function isSentAgain(code: number): boolean {
  return code === errorCode.REFUSED_STREAM || code === errorCode.PROTOCOL_ERROR;
}

function unknownOutcome(origin: "proxy" | "backend", what: string): Failure {
  return new Failure("outcome-unknown", origin, `${what}: whether it was executed is not known`);
}

/** client-go repeats a request after a 503 with Retry-After, so only a safe one gets that. */
export function failureOfCut(isSafe: boolean): Failure {
  const message = "The proxy ended this request before its answer came";
  return isSafe ? new Failure("draining", "proxy", message) : unknownOutcome("proxy", message);
}

export function lostUnanswered(backend: string): Failure {
  return new Failure("backend-lost", "backend", `Backend ${backend} was lost before it answered`);
}

/** Undefined if the reset itself is relayed. `mayRunTwice`: the request is safe, or no backend has begun with it. */
export function failureOfLost(
  { backend, isMalformed }: Attempt,
  code: number,
  mayRunTwice: boolean,
): Failure | undefined {
  // The backend may have processed the request. Relayed as RST_STREAM(PROTOCOL_ERROR), Go's transport would repeat it by
  // itself, and an HTTP/1.1 client would get 400.
  if (isMalformed)
    return new Failure("backend-protocol", "backend", `Backend ${backend} sent a malformed answer`);
  if (code === lost) return lostUnanswered(backend);
  if (mayRunTwice || !isSentAgain(code)) return undefined;
  return unknownOutcome("backend", `Backend ${backend} broke off before it answered`);
}
