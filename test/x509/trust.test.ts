import { X509Certificate } from "node:crypto";
import { duplexPair } from "node:stream";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wrongName } from "../../src/upstream/net/untrusted-certificate.ts";
import { checkServerName, clientTls, trustAsGo } from "../../src/x509/trust.ts";
import { type BundleRow, bundleRows } from "../support/ca-bundles.ts";
import { within } from "../support/within.ts";
import { dnsNames, keysFor, nameOf, privatePem, writeCertificate } from "../support/x509-writer.ts";

const test = suite("x509/trust");

/** Returns true if a client with this CA bundle trusts the server. */
async function isTrusted({ bundle, chain, key }: BundleRow, maxVersion: tls.SecureVersion): Promise<boolean> {
  const [near, far] = duplexPair();
  const secureContext = tls.createSecureContext({ cert: chain, key, ciphers: "DEFAULT@SECLEVEL=0" });
  const server = new tls.TLSSocket(near, { isServer: true, secureContext });
  const client = tls.connect({ socket: far, ca: bundle, servername: "localhost", maxVersion, ...clientTls });
  trustAsGo(client, bundle);
  const outcome = new Promise<boolean>((resolve) => {
    server.on("error", () => {});
    client.on("error", () => resolve(false));
    client.once("secureConnect", () => resolve(client.authorized));
  });
  const found = await within(20_000, "a handshake", outcome);
  client.destroy();
  server.destroy();
  return found;
}

for (const row of bundleRows)
  test(`a backend is ${row.isTrusted ? "" : "not "}trusted by kubectl if the CA file has ${row.title}`, async () => {
    const expected = row.isTrusted || row.isTrustedByOpenSsl === true;
    for (const version of ["TLSv1.2", "TLSv1.3"] as const)
      assert.is(await isTrusted(row, version), expected, version);
  });

test("the name of a server is compared, even if only Go trusts its CA", async () => {
  const row = bundleRows.find(({ title }) =>
    title.startsWith("the old CA of two with one name, which comes last"),
  );
  assert.ok(row);
  const [near, far] = duplexPair();
  const secureContext = tls.createSecureContext({ cert: row.chain, key: row.key });
  const server = new tls.TLSSocket(near, { isServer: true, secureContext });
  server.on("error", () => {});
  const client = tls.connect({ socket: far, ca: row.bundle, servername: "other.test", ...clientTls });
  trustAsGo(client, row.bundle);
  const error = await within(
    20_000,
    "the refusal",
    new Promise<Error>((resolve) => client.on("error", resolve)),
  );
  assert.is("code" in error && error.code, "ERR_TLS_CERT_ALTNAME_INVALID");
  server.destroy();
});

/** Connects a client with `clientTls` to a server whose certificate has these names. */
async function connected(
  names: readonly string[],
  onSecure: (socket: tls.TLSSocket) => void,
): Promise<tls.TLSSocket> {
  const keys = keysFor("P-256", "named");
  const cert = writeCertificate({ name: nameOf(["CN", "a"]), keys, extensions: [dnsNames(...names)] });
  const server = tls.createServer({ cert, key: privatePem(keys), maxVersion: "TLSv1.2" }, onSecure);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" ? (address?.port ?? 0) : 0;
  const client = tls.connect({ host: "127.0.0.1", port, ca: cert, servername: "localhost", ...clientTls });
  trustAsGo(client, cert);
  client.on("close", () => server.close());
  return client;
}

test("a server has a name if Go finds it in its certificate, by label, wildcard or address", () => {
  const rows: readonly (readonly [string, string, boolean])[] = [
    ["*.example.com", "B.Example.com", true],
    ["*.test", "a.test", true],
    ["v*.example.com", "v1.example.com", false],
    ["*v.example.com", "1v.example.com", false],
    ["b.*.com", "b.example.com", false],
    ["*.example.com", "a.b.example.com", false],
    ["*", "localhost", false],
    ["10.0.0.1", "10.0.0.1", false],
  ];
  const keys = keysFor("P-256", "named");
  for (const [named, asked, isIn] of rows) {
    const pem = writeCertificate({ name: nameOf(["CN", asked]), keys, extensions: [dnsNames(named)] });
    const error = checkServerName(asked, new X509Certificate(pem).toLegacyObject());
    assert.is(error === undefined, isIn, `${named} ${asked}`);
  }
});

test("a server that renegotiates is told that it may not", async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const client = await connected(["localhost"], (socket) => {
    socket.on("error", (reason) => resolve(reason.message));
    socket.renegotiate({}, () => resolve("done"));
    socket.write("after");
  });
  client.on("error", () => {});
  client.resume();
  assert.match(await within(20_000, "the refusal", promise), "no renegotiation");
  client.destroy();
});

test("the error about thousands of names is short, and escapes what a terminal would obey", async () => {
  const hostile = Array.from({ length: 2000 }, (_, at) => `\u001b[2Jn${at}.test`);
  const client = await connected(hostile, () => {});
  const error = await within(
    20_000,
    "the refusal",
    new Promise<Error>((resolve) => client.on("error", resolve)),
  );
  const trusted = { serverName: "localhost" };
  const names = "cert" in error ? (error.cert as { subjectaltname: string }) : {};
  const message = wrongName(error, trusted, names)?.message ?? "";
  assert.ok(message.length < 300, `${message.length} characters`);
  assert.not.match(message, /[^ -~]/);
});

test.run();
