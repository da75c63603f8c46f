import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { AssertingPolicy } from "../../../src/upstream/identity/asserted-identity.ts";
import { answerTo, type Canary, canaryBody, canaryFor } from "../../../src/upstream/identity/canary.ts";
import { usualNames as names } from "../../support/certificate.ts";

const test = suite("upstream/identity/canary");

const frontProxy = canaryFor({ clientCerts: "FrontProxy", names });
const impersonate = canaryFor({ clientCerts: "Impersonate" });
const lent = canaryFor({ clientCerts: "ActAsImpersonator" });

function fieldsOf(policy: AssertingPolicy): string[] {
  return canaryFor(policy).fields.map(({ name }) => name);
}

/** Returns the result in words. */
function said(canary: Canary, status: number, body: unknown): string {
  const answer = answerTo(canary, { status, body: typeof body === "string" ? body : JSON.stringify(body) });
  return `${answer.kind} ${answer.kind === "proven" ? answer.gap : answer.problem}`.trimEnd();
}

const reviewOf = (userInfo: object): object => ({ kind: "SelfSubjectReview", status: { userInfo } });
const forbidden = (message: string): object => ({ kind: "Status", message, code: 403 });

test("a canary asserts a new name each time, with the fields that clients' requests have", () => {
  assert.is.not(frontProxy.user, canaryFor({ clientCerts: "FrontProxy", names }).user);
  assert.equal(fieldsOf({ clientCerts: "FrontProxy", names }), [
    "x-remote-user",
    "x-remote-uid",
    "x-remote-group",
    "x-remote-extra-authentication.kubernetes.io%2fcredential-id",
  ]);
  assert.equal(fieldsOf({ clientCerts: "Impersonate" }), ["impersonate-user", "impersonate-group"]);
  assert.equal(fieldsOf({ clientCerts: "ActAsImpersonator" }), []);
  assert.is(JSON.parse(canaryBody).kind, "SelfSubjectReview");
});

test("the whole canary in the answer is a proof, and a missing uid a proof with a gap", () => {
  const { user, group, uid } = frontProxy;
  const groups = [group, "system:authenticated"];
  assert.is(said(frontProxy, 201, reviewOf({ username: user, uid, groups })), "proven");
  assert.match(said(frontProxy, 201, reviewOf({ username: user, groups })), /^proven drops the uid/);
  assert.is(
    said(impersonate, 201, reviewOf({ username: impersonate.user, groups: [impersonate.group] })),
    "proven",
  );
  assert.is(said(lent, 201, reviewOf({ username: "kubernetes-admin", groups: [] })), "proven");
});

test("another identity is a refusal that names it: the proxy's own user, anonymous, or the canary without its group", () => {
  for (const [canary, username] of [
    [frontProxy, "kubernetes-admin"],
    [frontProxy, "system:anonymous"],
    [frontProxy, `${frontProxy.user}x`],
    [frontProxy, ""],
    [impersonate, "impersonator"],
    [lent, "system:anonymous"],
  ] as const)
    assert.is(
      said(canary, 201, reviewOf({ username, groups: [canary.group] })),
      `refused it takes every client with a certificate for ${JSON.stringify(username)}`,
    );
  assert.match(
    said(frontProxy, 201, reviewOf({ username: frontProxy.user, groups: ["x"] })),
    "not the groups",
  );
});

test("a 401 is a refusal, and a 403 is one unless it names the canary", () => {
  assert.match(said(frontProxy, 401, {}), /^refused it answers 401/);
  const of = (user: string): object =>
    forbidden(`selfsubjectreviews.authentication.k8s.io is forbidden: User "${user}" cannot create resource`);
  assert.is(said(frontProxy, 403, of(frontProxy.user)), "proven");
  assert.match(
    said(frontProxy, 403, of("system:anonymous")),
    'refused it takes every client with a certificate for "system:anonymous"',
  );
  assert.match(said(frontProxy, 403, "no"), /^refused it answers 403/);
  assert.is(said(lent, 403, of("impersonator")), "proven");
});

test("an impersonator that may not state every user is proven with a gap, because the apiserver refuses such requests itself", () => {
  const body = forbidden('users "x" is forbidden: User "impersonator" cannot impersonate resource "users"');
  assert.match(said(impersonate, 403, body), /^proven does not let the impersonator state every user/);
  assert.match(said(frontProxy, 403, body), "refused");
});

test("a backend that takes the impersonator for an anonymous client refuses it, whatever the anonymous may not do", () => {
  const body = forbidden(
    'users "x" is forbidden: User "system:anonymous" cannot impersonate resource "users"',
  );
  assert.match(said(impersonate, 403, body), /^refused .*system:anonymous/);
});

test("429, 5xx, 404, redirects and answers of other servers show nothing", () => {
  for (const [status, body] of [
    [429, {}],
    [500, {}],
    [503, "apiserver not ready"],
    [301, ""],
    [200, "ok"],
    [201, "{"],
    [201, { status: { userInfo: [] } }],
    [201, [1]],
    [201, "null"],
  ] as const)
    assert.match(said(frontProxy, status, body), /^none it answers/, String(status));
  assert.match(said(frontProxy, 404, {}), "before Kubernetes 1.28");
});

test("a name of any length in an answer is quoted and clipped", () => {
  const username = `a\n"${"b".repeat(100_000)}`;
  const text = said(frontProxy, 201, reviewOf({ username, groups: [] }));
  assert.ok(text.length < 500);
  assert.not.match(text, "\n");
});

test.run();
