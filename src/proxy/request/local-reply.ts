/**
 * The response to a client when there is no backend's to relay. Step 7 of 7.
 *
 * The only place where a Failure becomes a response: a Kubernetes `Status`, so that every client library can display it.
 */
import type { Failure, FailureCode } from "../../base/failure.ts";
import { Field } from "../../h2/core/field.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import { statusJson } from "../../kube/status.ts";

type Reply = { readonly status: number; readonly reason: string };

const replies: Record<FailureCode, Reply> = {
  "bad-request": { status: 400, reason: "BadRequest" },
  "client-certificate": { status: 403, reason: "Forbidden" },
  misdirected: { status: 421, reason: "BadRequest" },
  unauthenticated: { status: 401, reason: "Unauthorized" },
  "no-backend": { status: 503, reason: "ServiceUnavailable" },
  "backend-refused": { status: 503, reason: "ServiceUnavailable" },
  "backend-lost": { status: 502, reason: "InternalError" },
  "backend-protocol": { status: 502, reason: "InternalError" },
  "client-lost": { status: 499, reason: "Unknown" },
  "outcome-unknown": { status: 504, reason: "Timeout" },
  overload: { status: 429, reason: "TooManyRequests" },
  "bad-file": { status: 500, reason: "InternalError" },
  draining: { status: 503, reason: "ServiceUnavailable" },
};

/** Failures after which no backend has acted on the request: it was not sent, was refused, or is safe. */
const untouched = new Set<FailureCode>(["no-backend", "backend-refused", "overload", "draining"]);

/**
 * Writes the whole response. Retry-After goes only with what may be repeated: client-go repeats any method on a 5xx that
 * carries it (client-go rest/with_retry.go), and a write of unknown outcome must not be sent twice.
 */
export function sendLocalReply(side: StreamWriter, method: string, failure: Failure): number {
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
  const isBodiless = method === "HEAD";
  side.sendHeaders(fields, isBodiless);
  if (!isBodiless) side.sendData(body, 0, body.length, true);
  return status;
}

/** A `Status` of meta/v1, as the apiserver itself writes it. */
export function statusBody(failure: Failure, mayRetry: boolean): string {
  const { status, reason } = replies[failure.code];
  const details = mayRetry ? { retryAfterSeconds: 1 } : undefined;
  const message = `watchkeeper: ${failure.message}`;
  return statusJson({ message, reason, details, code: status });
}
