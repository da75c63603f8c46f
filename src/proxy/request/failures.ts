/** The failures that a client gets when no backend's response can be forwarded. */
import { Failure } from "../../base/failure.ts";
import type { Entry } from "../../events/journal.ts";
import type { RequestContext } from "../context/request-context.ts";
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
