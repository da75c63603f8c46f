/**
 * The canary: a SelfSubjectReview that asserts an invented identity with the proxy's own certificate. The answer shows
 * whose request the backend sees. If the certificate is an ordinary client certificate of the backend, the backend
 * ignores the asserted identity, and every client with a certificate would become the proxy's own user (D9).
 */
import { randomBytes } from "node:crypto";
import { clipped } from "../../base/detach.ts";
import { isRecord, parseJson, recordAt, textAt } from "../../base/json.ts";
import type { Field } from "../../h2/core/field.ts";
import { type AssertingPolicy, assertionOf } from "./asserted-identity.ts";

export const canaryPath = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
export const canaryBody = '{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}';

/** The invented identity, and the fields that assert it. In mode ActAsImpersonator, no identity is asserted. */
export type Canary = {
  readonly user: string;
  readonly group: string;
  /** "": none is asserted. */
  readonly uid: string;
  readonly fields: readonly Field[];
  readonly clientCerts: AssertingPolicy["clientCerts"];
};

/**
 * What a backend's answer shows. proven: the backend takes the asserted identity; `gap`: what it does not take, "" for
 * nothing. refused: it takes another identity, or none. none: the answer shows nothing.
 */
export type CanaryAnswer =
  | { readonly kind: "proven"; readonly gap: string }
  | { readonly kind: "refused"; readonly problem: string }
  | { readonly kind: "none"; readonly problem: string };

/** Returns a canary with a new name, which no user, role or cache can know. */
export function canaryFor(policy: AssertingPolicy): Canary {
  const word = randomBytes(8).toString("hex");
  const { clientCerts } = policy;
  const [user, group] = [`watchkeeper-canary-${word}`, `watchkeeper-canaries-${word}`];
  // To impersonate a uid takes a permission of its own, which only certificates with a uid need.
  const uid = clientCerts === "FrontProxy" ? `canary-${word}` : "";
  const stated = { name: user, groups: [group], uid: uid || undefined, fingerprint: "0".repeat(64) };
  return { user, group, uid, fields: assertionOf(stated, policy).fields, clientCerts };
}

type Response = { readonly status: number; readonly body: string };

export function answerTo(canary: Canary, { status, body }: Response): CanaryAnswer {
  const json = parseJson(body);
  const answer = isRecord(json) ? json : undefined;
  if (status === 401) return refused("it answers 401 (Unauthorized)");
  if (status === 403) return answerOfForbidden(canary, textAt(answer, "message"));
  if (status === 404)
    return none("it answers 404: apiservers before Kubernetes 1.28 have no SelfSubjectReview v1");
  const user = recordAt(recordAt(answer, "status"), "userInfo");
  if (user === undefined || (status !== 200 && status !== 201)) return none(`it answers ${status}`);
  return answerOfReview(canary, user);
}

function answerOfReview(canary: Canary, user: Readonly<Record<string, unknown>>): CanaryAnswer {
  const name = textAt(user, "username");
  const groups = Array.isArray(user["groups"]) ? user["groups"] : [];
  if (canary.clientCerts === "ActAsImpersonator")
    return name === "" || name === anonymous ? refused(becomes(name)) : { kind: "proven", gap: "" };
  if (name !== canary.user) return refused(becomes(name));
  if (!groups.includes(canary.group))
    return refused("it takes the asserted user, but not the groups (--requestheader-group-headers)");
  const hasUid = canary.uid === "" || textAt(user, "uid") === canary.uid;
  return { kind: "proven", gap: hasUid ? "" : "drops the uid of certificates (--requestheader-uid-headers)" };
}

/** Reads a 403, whose message names the user. The apiserver writes it after it has authenticated the request. */
function answerOfForbidden({ user, clientCerts }: Canary, message: string): CanaryAnswer {
  const name = /User "([^"]*)" cannot /.exec(message)?.[1];
  // The apiserver refuses such requests itself, so none of them is executed as another user.
  if (clientCerts === "Impersonate" && name !== anonymous && message.includes(" cannot impersonate "))
    return {
      kind: "proven",
      gap: `does not let the impersonator state every user and group (${said(message)})`,
    };
  if (name === user || (clientCerts === "ActAsImpersonator" && name !== undefined && name !== anonymous))
    return { kind: "proven", gap: "" };
  return refused(name === undefined ? `it answers 403 (${said(message)})` : becomes(name));
}

const anonymous = "system:anonymous";

function becomes(name: string): string {
  return `it takes every client with a certificate for ${said(name)}`;
}

function said(text: string): string {
  return JSON.stringify(clipped(text, 200));
}

function refused(problem: string): CanaryAnswer {
  return { kind: "refused", problem };
}

function none(problem: string): CanaryAnswer {
  return { kind: "none", problem };
}
