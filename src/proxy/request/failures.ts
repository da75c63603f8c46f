/** Failures of requests for which no backend's response can be relayed. */
import { clipped } from "../../base/detach.ts";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Entry } from "../../events/journal.ts";
import { pathIn, type RequestContext, userAgentOf } from "../context/request-context.ts";

export const noneAnswers = new Failure("no-backend", "proxy", "No backend answers");

export const tooManyUnproven = new Failure(
  "overload",
  "proxy",
  "Too many requests are under way with credentials that no backend has accepted yet",
);

export const refusedBy = (backend: string): Failure =>
  new Failure("backend-refused", "backend", `Backend ${backend} refused the request`);

/** A request that the proxy answers in the place of `backend`. */
export function failedEntry(
  { auditId, client, fields, verb }: RequestContext,
  { code, origin, message }: Failure,
  backend: string,
): Entry {
  const of = { auditId, verb: clipped(verb, limits.labelChars), path: pathIn(fields) };
  const from = { client: client.address, userAgent: userAgentOf(fields) };
  return { kind: "request.failed", code, origin, message, ...of, ...from, backend };
}
