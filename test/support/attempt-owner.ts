import { Field } from "../../src/h2/core/field.ts";
import { Caller } from "../../src/ops/ledger/caller.ts";
import { noSubject } from "../../src/ops/ledger/subject.ts";
import { type RequestContext, targetIn } from "../../src/upstream/context/request-context.ts";
import type { AttemptOwner } from "../../src/upstream/pool/attempt.ts";
import { poolKey } from "../../src/upstream/pool/pool-key.ts";
import { clientOf } from "./client.ts";

/** Returns the request context for tests of upstream attempts: a plain GET, unless `more` overrides a member. */
export function orderOf(more: Partial<RequestContext> = {}): RequestContext {
  const client = clientOf();
  const fields = [
    new Field(":method", "GET"),
    new Field(":scheme", "https"),
    new Field(":path", "/api"),
    new Field(":authority", "kube.test"),
  ];
  return {
    client,
    caller: new Caller({ subject: noSubject, agent: "unknown", address: client.address }, 0),
    at: 0,
    resource: "",
    method: "GET",
    kind: "plain",
    verb: "get",
    isObjectRead: false,
    isLogRead: false,
    isOwn: true,
    target: targetIn(more.fields ?? fields),
    fields,
    auditId: "",
    isBodiless: true,
    ...more,
  };
}

/** Returns an owner of upstream attempts with the given callbacks. All other callbacks do nothing. */
export function attemptOwner(hears: Partial<AttemptOwner>): AttemptOwner {
  return {
    context: orderOf(),
    poolKey: () => poolKey("proven", "plain"),
    attemptOpened() {},
    attemptRefused() {},
    attemptHeaders() {},
    attemptData() {},
    attemptSent() {},
    attemptGone() {},
    attemptSuspected() {},
    attemptCleared() {},
    attemptPassed() {},
    attemptLeaving() {},
    attemptFaulted(error) {
      throw error;
    },
    ...hears,
  };
}
