import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../src/failure.ts";
import { Field } from "../../src/h2/field.ts";
import { Client } from "../../src/proxy/client.ts";
import { identify } from "../../src/proxy/identify.ts";

const test = suite("proxy/identify");

function identified(
  fields: [string, string][],
  options: { isTrustedForwarder?: boolean; hasCertificate?: boolean } = {},
): string[] {
  const client = new Client({
    address: "10.0.0.9",
    port: 1,
    listener: "kube",
    alpn: "h2",
    isTls: true,
    isTrustedForwarder: false,
    hasCertificate: false,
    ...options,
  });
  const head = fields.map(([name, value]) => new Field(name, value));
  const outcome = identify(
    { method: "GET", scheme: "https", path: "/", authority: "", contentLength: -1, fields: head },
    client,
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

test("what came by plain text on loopback goes on as https", () => {
  assert.equal(identified([[":scheme", "http"]])[0], ":scheme: https");
});

test("a client certificate is refused by name until we can vouch for it", () => {
  assert.equal(identified([], { hasCertificate: true }), ["client-certificate"]);
});

test.run();
