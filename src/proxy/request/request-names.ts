/** The names by which the journal identifies a request and its client. */
import { clipped, detach } from "../../base/detach.ts";
import { limits } from "../../base/limits.ts";
import type { EntryOf } from "../../events/journal.ts";
import { verbLabel } from "../../kube/verb-label.ts";
import { type RequestContext, userAgentOf } from "../../upstream/context/request-context.ts";

export type RequestNames = Pick<
  EntryOf<"request.ended">,
  "auditId" | "client" | "userAgent" | "user" | "verb" | "path"
>;

/** The context of a request. A tunnel does not keep its request's context, only the audit id. */
export type NamedContext = RequestContext | { readonly auditId: string };

/** Returns the names that are known. A request's context has all of them; a tunnel has only the audit id. */
export function namesIn(context: NamedContext): Pick<RequestNames, "auditId"> & Partial<RequestNames> {
  return "caller" in context ? namesOf(context) : { auditId: context.auditId };
}

export function namesOf({ auditId, client, caller, verb, target, fields }: RequestContext): RequestNames {
  return {
    client: client.address,
    userAgent: userAgentOf(fields),
    user: caller.subject.name,
    verb: verbLabel(verb),
    path: pathOf(target),
    auditId,
  };
}

/** Returns the path without its query, which may contain a token. Copied, so that the journal keeps no long target. */
export function pathOf(target: string): string {
  const path = clipped(target.split("?", 1)[0] ?? "", limits.apiTextChars);
  return target.length > limits.apiTextChars ? detach(path) : path;
}
