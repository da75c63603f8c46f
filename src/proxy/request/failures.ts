/** The failures that a client gets when no backend's response can be forwarded. */
import { Failure } from "../../base/failure.ts";
import type { Entry, Journal } from "../../events/journal.ts";
import type { RequestContext } from "../../upstream/context/request-context.ts";
import type { Attempt } from "../../upstream/pool/attempt.ts";
import { malformedBy } from "./local-reply.ts";
import { namesOf } from "./request-names.ts";

export const noneAnswers = new Failure("no-backend", "proxy", "No backend answers");

export const refusedBy = (backend: string): Failure =>
  new Failure("backend-refused", "backend", `Backend ${backend} refused the request`);

/** Returns the journal entry of a request that the proxy answers itself, in place of `backend`. */
export function failedEntry(
  context: RequestContext,
  { code, origin, message }: Failure,
  backend: string,
): Entry {
  return { kind: "request.failed", code, origin, message, ...namesOf(context), backend };
}

/** Journals a response that became malformed after the client got its head. */
export function journalMalformed(
  journal: Pick<Journal, "write">,
  context: RequestContext,
  { backend, fault }: Pick<Attempt, "backend" | "fault">,
  code: number,
): void {
  if (fault !== undefined) journal.write(failedEntry(context, malformedBy(backend, fault, code), backend));
}
