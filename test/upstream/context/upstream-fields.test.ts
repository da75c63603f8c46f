import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { identify } from "../../../src/upstream/context/upstream-fields.ts";
import { type Identity, identityOf } from "../../../src/upstream/identity/asserted-identity.ts";
import { shownBy, usualNames } from "../../support/certificate.ts";
import { clientOf } from "../../support/client.ts";

const test = suite("upstream/context/upstream-fields");

function identified(
  fields: [string, string][],
  options: { isTrustedForwarder?: boolean; identity?: Identity; wallMs?: number } = {},
): string[] {
  const client = clientOf(options);
  const head = fields.map(([name, value]) => new Field(name, value));
  const outcome = identify(
    { method: "GET", scheme: "https", path: "/", authority: "", contentLength: -1, fields: head },
    client,
    { wall: () => options.wallMs ?? 0 },
  );
  if (outcome instanceof Failure) return [outcome.code];
  return outcome.fields.map((field) => `${field.name}: ${field.value}`);
}

test("fields keep their order and number, Impersonate-Group twice stays two (F5)", () => {
  const sent = identified([
    [":method", "GET"],
    ["impersonate-group", "a"],
    ["authorization", "Bearer x"],
    ["impersonate-group", "b, c"],
  ]);
  assert.equal(sent.slice(0, 4), [
    ":method: GET",
    "impersonate-group: a",
    "authorization: Bearer x",
    "impersonate-group: b, c",
  ]);
});

test("Audit-ID is kept when there is one, and new each time when there is none (F11)", () => {
  assert.ok(identified([["audit-id", "mine"]]).includes("audit-id: mine"));
  const made = identified([]).at(-1) ?? "";
  assert.match(made, /^audit-id: [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.is.not(made, identified([]).at(-1));
});

test("X-Forwarded-For is believed only from a configured forwarder", () => {
  const forwarded = (isTrustedForwarder: boolean): string[] =>
    identified([["x-forwarded-for", "1.2.3.4"]], { isTrustedForwarder }).filter((field) =>
      field.startsWith("x-forwarded"),
    );
  assert.equal(forwarded(false), ["x-forwarded-for: 10.0.0.9"]);
  assert.equal(forwarded(true), ["x-forwarded-for: 1.2.3.4, 10.0.0.9"]);
});

test("X-Real-IP, which kube-apiserver's audit log has among a client's addresses, is kept only from a configured forwarder", () => {
  const kept = (isTrustedForwarder: boolean): string[] =>
    identified(
      [
        ["x-real-ip", "6.6.6.6"],
        ["x-real-ip", "7.7.7.7"],
        ["forwarded", "for=6.6.6.6"],
      ],
      { isTrustedForwarder },
    ).filter((field) => /real|forwarded/.test(field));
  assert.equal(kept(false), ["forwarded: for=6.6.6.6", "x-forwarded-for: 10.0.0.9"]);
  assert.equal(kept(true), [
    "x-real-ip: 6.6.6.6",
    "x-real-ip: 7.7.7.7",
    "forwarded: for=6.6.6.6",
    "x-forwarded-for: 10.0.0.9",
  ]);
});

test("what came by plain text on loopback goes on as https", () => {
  assert.equal(identified([[":scheme", "http"]])[0], ":scheme: https");
});

const frontProxy = { clientCerts: "FrontProxy", names: usualNames } as const;
const alice = await shownBy({ name: "alice", groups: ["devs"] });
const aliceSaid = identityOf(alice, frontProxy);

test("for a certificate's holder the proxy's identity headers go upstream, behind all its own, and none that it sends for them", () => {
  const sent = identified(
    [
      [":method", "GET"],
      ["x-remote-user", "admin"],
      ["accept", "*/*"],
      ["x_remote_group", "system:masters"],
      ["authorization", "Bearer x"],
      ["impersonate-user", "bob"],
      ["audit-id", "mine"],
    ],
    { identity: aliceSaid },
  );
  assert.equal(sent.slice(0, 7), [
    ":method: GET",
    "accept: */*",
    "impersonate-user: bob",
    "audit-id: mine",
    "x-forwarded-for: 10.0.0.9",
    "x-remote-user: alice",
    "x-remote-group: devs",
  ]);
  assert.is(sent.length, 8);
});

const claiming: [string, string][] = [
  ["x-remote-user", "admin"],
  ["authorization", "Bearer x"],
  ["x-remote-group", "a"],
  ["x-remote-group", "b"],
];

test("where certificates identify no client the same fields pass as they came", () => {
  for (const identity of [undefined, identityOf(undefined, { clientCerts: "Reject" })])
    assert.equal(
      identified(claiming, identity && { identity }).slice(0, 4),
      claiming.map(([name, value]) => `${name}: ${value}`),
    );
});

test("a client cannot set such a field where certificates identify clients, whatever he has shown (A39)", () => {
  const strange = { ...alice, problem: "self-signed certificate" };
  for (const policy of [
    frontProxy,
    { clientCerts: "Impersonate" },
    { clientCerts: "ActAsImpersonator" },
  ] as const)
    for (const one of [
      { identity: identityOf(undefined, policy) },
      { identity: identityOf(strange, policy) },
      { identity: identityOf(alice, policy), wallMs: alice.notAfter },
    ])
      assert.equal(identified(claiming, one).slice(0, 2), [
        "authorization: Bearer x",
        "x-forwarded-for: 10.0.0.9",
      ]);
});

test("where the proxy impersonates, a client cannot impersonate", () => {
  const identity = identityOf(alice, { clientCerts: "Impersonate" });
  assert.equal(identified([["impersonate-user", "bob"]], { identity }), ["client-certificate"]);
  assert.equal(identified([["impersonate_user", "bob"]], { identity }), ["client-certificate"]);
  assert.ok(identified([], { identity }).includes("impersonate-user: alice"));
});

test("an expired or unproven certificate leaves the bearer to count, and is told so without one", () => {
  const token: [string, string][] = [["authorization", "Bearer x"]];
  const websocket: [string, string][] = [
    ["sec-websocket-protocol", "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.eA"],
  ];
  const unproven = identityOf({ ...alice, problem: "self-signed certificate" }, frontProxy);
  const expired = { identity: aliceSaid, wallMs: alice.notAfter };
  for (const one of [expired, { identity: unproven }]) {
    assert.equal(identified([], one), ["unauthenticated"]);
    assert.equal(identified([["authorization", "Basic x"]], one), ["unauthenticated"]);
    for (const own of [token, websocket]) {
      const sent = identified(own, one);
      assert.is(sent[0], own.map(([name, value]) => `${name}: ${value}`).join());
      assert.not.ok(sent.some((field) => field.startsWith("x-remote-")));
    }
  }
  const last = identified([], { identity: aliceSaid, wallMs: alice.notAfter - 1 });
  assert.ok(last.includes("x-remote-user: alice"));
});

test("a client certificate is refused by name where it identifies no client", () => {
  const identity = identityOf(alice, { clientCerts: "Reject" });
  assert.equal(identified([["authorization", "Bearer x"]], { identity }), ["client-certificate"]);
});

test("what forwarders have made longer than a field may be is not passed on, the audit id goes up whole", () => {
  const long = "1".repeat(40_000);
  const fields = identified(
    [
      ["x-forwarded-for", long],
      ["x-forwarded-for", long],
      ["audit-id", long],
    ],
    { isTrustedForwarder: true },
  );
  assert.equal(fields, [`audit-id: ${long}`, "x-forwarded-for: 10.0.0.9"]);
});

test.run();
