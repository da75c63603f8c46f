import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../../src/h2/core/field.ts";
import type { HeaderNames } from "../../../src/ops/config/cluster.ts";
import type { IdentityPolicy } from "../../../src/ops/config/config.ts";
import {
  certificateLeaveMs,
  type Identity,
  identityOf,
  leavesAt,
  type PeerCertificate,
  unidentified,
} from "../../../src/upstream/identity/asserted-identity.ts";
import { shownBy, usualNames } from "../../support/certificate.ts";

const test = suite("upstream/identity/asserted-identity");

const frontProxy = { clientCerts: "FrontProxy", names: usualNames } as const;

function said(identity: Identity): string[] {
  if (identity.kind === "none") return ["none"];
  if (identity.kind === "refused") return [identity.failure.code, String(identity.mayUseBearer)];
  return identity.fields.map(({ name, value }) => `${name}: ${value}`);
}

const alice = await shownBy({ name: "alice", groups: ["devs", "a, b", "", "devs"] });

function dropped(identity: Identity, names: readonly string[]): string[] {
  if (identity.kind !== "asserted") return [];
  return names.filter((name) => identity.drops(new Field(name, "x")));
}

test("a certificate becomes X-Remote-*, one field for each group, commas and all", () => {
  assert.equal(said(identityOf(alice, frontProxy)), [
    "x-remote-user: alice",
    "x-remote-group: devs",
    "x-remote-group: a, b",
    "x-remote-group: devs",
    `x-remote-extra-authentication.kubernetes.io%2fcredential-id: X509SHA256=${alice.fingerprint}`,
  ]);
});

test("or Impersonate-*, where the proxy's own credential may", () => {
  assert.equal(said(identityOf(alice, { clientCerts: "Impersonate" })), [
    "impersonate-user: alice",
    "impersonate-group: devs",
    "impersonate-group: a, b",
    "impersonate-group: devs",
  ]);
});

test("an impersonated user has the groups of the certificate and no other, also by a service account's name", async () => {
  const shown = async (name: string, groups: readonly string[] = []): Promise<string[]> =>
    said(identityOf(await shownBy({ name, groups }), { clientCerts: "Impersonate" }));
  const account = "system:serviceaccount:kube-system:admin";
  // The one group keeps the apiserver from adding system:serviceaccounts and system:serviceaccounts:kube-system.
  assert.equal(await shown(account), [
    `impersonate-user: ${account}`,
    "impersonate-group: system:authenticated",
  ]);
  assert.equal(await shown(account, [""]), await shown(account));
  assert.equal(await shown(account, ["a"]), [`impersonate-user: ${account}`, "impersonate-group: a"]);
  assert.equal(await shown("system:node:n"), ["impersonate-user: system:node:n"]);
  // The apiserver treats this name as a client without credentials.
  assert.equal(await shown("system:anonymous", ["a"]), ["unauthenticated", "true"]);
  const asserted = said(identityOf(await shownBy({ name: account }), frontProxy));
  assert.equal(asserted.slice(0, 1), [`x-remote-user: ${account}`]);
  assert.not.ok(asserted.some((field) => field.startsWith("x-remote-group")));
});

test("or nothing at all, where the proxy's own credential is lent: nothing else counts, and the apiserver judges the rest", () => {
  const identity = identityOf(alice, { clientCerts: "ActAsImpersonator" });
  assert.equal(said(identity), []);
  assert.equal(dropped(identity, ["authorization", "x-remote-user", "X_Remote_Group", "impersonate-user"]), [
    "authorization",
    "x-remote-user",
  ]);
  assert.ok(identity.kind === "asserted" && !identity.isPresumptuous(new Field("impersonate-user", "x")));
  const strange = identityOf({ ...alice, problem: "unable to verify" }, { clientCerts: "ActAsImpersonator" });
  assert.equal(said(strange), ["unauthenticated", "true"]);
});

test("under the configured names of the apiserver, the first of each", () => {
  const names: HeaderNames = {
    user: ["x-user", "x-other-user"],
    uid: ["x-uid"],
    group: ["x-group"],
    extraPrefixes: ["x-more-"],
  };
  const identity = identityOf(alice, { clientCerts: "FrontProxy", names });
  assert.equal(said(identity).slice(0, 2), ["x-user: alice", "x-group: devs"]);
  const sent = [
    "x-user",
    "x_user",
    "x-other_user",
    "x-uid",
    "x_group",
    "x-more-a",
    "x_more_a",
    "x-remote-user",
  ];
  assert.equal(dropped(identity, [...sent, "x-users"]), sent);
});

test("what could pass for an identity is dropped in any spelling, and nothing else is", () => {
  const forged = [
    "x-remote-user",
    "x_remote_user",
    "x-remote_group",
    "x_remote-extra-scopes",
    "x-remote-uid",
    // All characters that a field name may contain besides letters and digits (RFC 9110 §5.6.2).
    ...Array.from("!#$%&'*+-.^_`|~", (mark) => `x${mark}remote${mark}user`),
  ];
  const honest = ["x-remote", "x-remotes", "accept", "x-forwarded-for", "user-agent", "remote-user"];
  for (const policy of [frontProxy, { clientCerts: "Impersonate" }] as const satisfies IdentityPolicy[])
    assert.equal(dropped(identityOf(alice, policy), [...forged, ...honest, "authorization"]), [
      ...forged,
      "authorization",
    ]);
});

test("a request to impersonate is judged by the apiserver, or by no policy", () => {
  const names = ["impersonate-user", "impersonate_group", "impersonate-extra-a"];
  const count = (policy: IdentityPolicy): number => {
    const identity = identityOf(alice, policy);
    if (identity.kind !== "asserted") return -1;
    return names.filter((name) => identity.isPresumptuous(new Field(name, "x"))).length;
  };
  assert.equal([count(frontProxy), count({ clientCerts: "Impersonate" })], [0, 3]);
});

test("a certificate that does not hold leaves the bearer to count; so does one without a name", async () => {
  const problem = "unable to get local issuer certificate";
  assert.equal(said(identityOf({ ...alice, problem }, frontProxy)), ["unauthenticated", "true"]);
  assert.equal(said(identityOf(await shownBy({ name: "" }), frontProxy)), ["unauthenticated", "true"]);
  assert.equal(said(identityOf(undefined, frontProxy)), ["none"]);
  assert.equal(said(identityOf(alice, { clientCerts: "Reject" })), ["client-certificate", "false"]);
});

test("a name that no header field can carry is refused, never mended", async () => {
  const shown = (name: string, groups: readonly string[] = []): Promise<PeerCertificate> =>
    shownBy({ name, groups });
  for (const odd of ["a\nx-remote-group: system:masters", "a\0", " admin", "admin ", "\u007f"]) {
    assert.equal(said(identityOf(await shown(odd), frontProxy)), ["unauthenticated", "true"]);
    assert.equal(said(identityOf(await shown("a", ["b", odd]), frontProxy)), ["unauthenticated", "true"]);
  }
  // The field's value is UTF-8, here shown byte by byte as Latin-1.
  assert.is(said(identityOf(await shown("Zoë"), frontProxy))[0], "x-remote-user: Zo\xc3\xab");
});

test("a client with a certificate is sent away before it expires; one that came later than that, when it expires", () => {
  const identity = identityOf(alice, frontProxy);
  const { notAfter } = alice;
  const early = notAfter - certificateLeaveMs;
  assert.is(leavesAt(identity, early - 1), early);
  assert.is(leavesAt(identity, early), notAfter);
  assert.is(leavesAt(unidentified, 0), Number.POSITIVE_INFINITY);
  assert.is(leavesAt(identityOf(alice, { clientCerts: "Reject" }), 0), Number.POSITIVE_INFINITY);
});

test.run();
