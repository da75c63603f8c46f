import { suite } from "uvu";
import * as assert from "uvu/assert";
import { failureFrom, metOf } from "../../../src/base/failure.ts";
import { reword, wrongName } from "../../../src/upstream/net/untrusted-certificate.ts";

const test = suite("upstream/net/untrusted-certificate");

/** The error that Node raises. */
const mismatch = (): Error =>
  Object.assign(new Error("Hostname/IP does not match"), { code: "ERR_TLS_CERT_ALTNAME_INVALID" });

const source = { caFile: "/etc/ca.crt", isNamed: true };

function retold(code: string, message: string, trusted: Parameters<typeof reword>[1]): string {
  const reason = Object.assign(new Error(message), { code });
  reword(reason, trusted);
  assert.is(metOf(reason), metOf(Object.assign(new Error(message), { code })));
  return failureFrom(reason, "backend").message;
}

test("a certificate of another authority names the file that does not have it, and no flag of Node's", () => {
  const message =
    "unable to verify the first certificate; if the root CA is installed locally, try running Node.js with --use-system-ca";
  const trusted = { serverName: "x", source };
  const expected = "its certificate is not signed by tls.caFile /etc/ca.crt";
  assert.is(retold("UNABLE_TO_VERIFY_LEAF_SIGNATURE", message, trusted), expected);
  assert.is(retold("SELF_SIGNED_CERT_IN_CHAIN", message, trusted), expected);
  assert.is(
    retold("UNABLE_TO_VERIFY_LEAF_SIGNATURE", message, { serverName: "x" }),
    "unable to verify the first certificate",
  );
});

test("any other error keeps Node's message", () => {
  assert.is(
    retold("CERT_HAS_EXPIRED", "certificate has expired", { serverName: "x", source }),
    "certificate has expired",
  );
  assert.is(retold("ECONNRESET", "read ECONNRESET", { serverName: "x", source }), "read ECONNRESET");
});

test("a certificate for another name names the key by which it was asked for, and the names that it has", () => {
  const certificate = { subjectaltname: "DNS:a.example, IP Address:10.0.0.1" };
  const wrong = (serverName: string, isNamed: boolean): string | undefined =>
    wrongName(mismatch(), { serverName, source: { ...source, isNamed } }, certificate)?.message;
  assert.is(wrongName(undefined, { serverName: "a.example" }, certificate), undefined);
  assert.is(
    wrong("b.example", true),
    'its certificate is not for "b.example" (tls.serverName), but for DNS:a.example, IP Address:10.0.0.1',
  );
  assert.match(
    wrong("10.0.0.2", false) ?? "",
    /not for "10\.0\.0\.2" \(the host of its url\), but for .*; tls\.serverName may ask for another name$/,
  );
  const reason = wrongName(mismatch(), { serverName: "b.example", source }, certificate);
  assert.is(metOf(reason), "untrusted");
});

test("what a stranger writes into a certificate is cut short", () => {
  const certificate = { subjectaltname: "DNS:a.example, ".repeat(1000) };
  const reason = wrongName(mismatch(), { serverName: "b" }, certificate);
  assert.ok((reason?.message.length ?? 0) < 300);
});

test.run();
