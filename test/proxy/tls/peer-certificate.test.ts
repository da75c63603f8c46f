import { X509Certificate } from "node:crypto";
import { duplexPair } from "node:stream";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { createAuthority, type Pair } from "../../../src/ops/pki/pki.ts";
import { peerCertificateOn } from "../../../src/proxy/tls/handshake.ts";
import type { PeerCertificate } from "../../../src/upstream/identity/asserted-identity.ts";
import { namesOnly } from "../../../src/x509/trust.ts";
import { rootsIn } from "../../../src/x509/verify.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/tls/peer-certificate");

const { authority, serving } = await testPki();

/** Returns what the proxy's server knows about a client that presents this certificate. */
async function shown(
  pair: Pair | undefined,
  ca = authority.certificate,
): Promise<PeerCertificate | undefined> {
  const [near, far] = duplexPair();
  const roots = rootsIn(ca);
  const own = { cert: serving.certificate, key: serving.key };
  const secureContext = tls.createSecureContext({ ...own, ca: namesOnly(roots) });
  const server = new tls.TLSSocket(near, {
    isServer: true,
    secureContext,
    requestCert: true,
    rejectUnauthorized: false,
  });
  const presented = pair === undefined ? {} : { cert: pair.certificate, key: pair.key };
  const client = tls.connect({ socket: far, rejectUnauthorized: false, ...presented });
  await within(20_000, "the handshake", new Promise((resolve) => server.once("secure", resolve)));
  const outcome = peerCertificateOn(server, roots, Date.now());
  client.destroy();
  server.destroy();
  return outcome;
}

const alice = authority.issue({ name: "alice", usage: "client" });

test("a client without a certificate has shown none", async () => {
  assert.is(await shown(undefined), undefined);
});

test("a certificate of the authority's is one, by its fingerprint and its end", async () => {
  const outcome = await shown(alice);
  assert.is(outcome?.problem, undefined);
  assert.match(outcome?.fingerprint ?? "", /^[0-9a-f]{64}$/);
  assert.ok((outcome?.notAfter ?? 0) > Date.now());
});

test("a certificate of another CA, an expired one and a server's are invalid, each with its reason", async () => {
  const other = await createAuthority({ name: "watchkeeper test", clock: wallClock });
  assert.is(
    (await shown(alice, other.certificate))?.problem,
    "it is signed by an unknown authority: its signature is not the issuer's",
  );
  const past = authority.issue({ name: "alice", usage: "client", notAfter: Date.now() - 1000 });
  assert.match((await shown(past))?.problem ?? "", "expired");
  const future = authority.issue({ name: "alice", usage: "client", notBefore: Date.now() + 3_600_000 });
  assert.match((await shown(future))?.problem ?? "", "not yet valid");
  assert.match((await shown(serving))?.problem ?? "", "extended key usage");
});

test("a client with a resumed session is not verified", async () => {
  const x509 = new X509Certificate(alice.certificate);
  const resumed = { getPeerX509Certificate: () => x509, isSessionReused: () => true };
  const outcome = peerCertificateOn(resumed as never, rootsIn(authority.certificate), Date.now());
  assert.is(outcome?.problem, "the TLS session was resumed");
});

test.run();
