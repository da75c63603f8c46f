import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  accessIn,
  accessReview,
  tokenReview,
  userIn,
} from "../../../../src/ops/admin/authorization/reviews.ts";

const test = suite("ops/admin/authorization/reviews");

const user = { username: "alice", uid: "7", groups: ["dev"], extra: { "a.b/scopes": ["x"] } };

test("a token is asked about, for an audience where there is one", () => {
  assert.equal(tokenReview("t", []), {
    kind: "TokenReview",
    path: "/apis/authentication.k8s.io/v1/tokenreviews",
    body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token: "t" } },
  });
  const { body } = tokenReview("t", ["watchkeeper"]);
  assert.equal("spec" in body && body.spec, { token: "t", audiences: ["watchkeeper"] });
});

test("the path is the nonResourceURL of the review", () => {
  const { path, body } = accessReview(user, "get", "/api/v1/leases");
  assert.is(path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
  assert.equal("spec" in body && body.spec, {
    user: "alice",
    uid: "7",
    groups: ["dev"],
    extra: { "a.b/scopes": ["x"] },
    nonResourceAttributes: { verb: "get", path: "/api/v1/leases" },
  });
});

test("a user comes back as they are", () => {
  const status = { authenticated: true, user, audiences: ["https://kubernetes"] };
  assert.equal(userIn({ status }, []), user);
  assert.equal(userIn({ status: { authenticated: true, user: { username: "a" } } }, []), {
    username: "a",
    uid: "",
    groups: [],
    extra: {},
  });
});

test("a review that does not clearly name a user identifies none", () => {
  const audiences = ["watchkeeper"];
  for (const answer of [
    undefined,
    null,
    "yes",
    {},
    { status: {} },
    { status: { authenticated: "true", user } },
    { status: { authenticated: false, user } },
    { status: { authenticated: true } },
    { status: { authenticated: true, user: { username: "" } } },
    { status: { authenticated: true, user: { username: ["alice"] } } },
  ])
    assert.is(userIn(answer, []), undefined, JSON.stringify(answer));
  for (const named of [undefined, [], ["other"], "watchkeeper"])
    assert.is(userIn({ status: { authenticated: true, user, audiences: named } }, audiences), undefined);
  const meant = { status: { authenticated: true, user, audiences: ["other", "watchkeeper"] } };
  assert.equal(userIn(meant, audiences), user);
});

test("only allowed is allowed", () => {
  assert.equal(accessIn({ status: { allowed: true, reason: "RBAC: x" } }), {
    isAllowed: true,
    reason: "RBAC: x",
  });
  for (const status of [
    undefined,
    {},
    { allowed: "true" },
    { allowed: false },
    { allowed: true, denied: true },
  ])
    assert.is(accessIn({ status }).isAllowed, false, JSON.stringify(status));
});

test.run();
