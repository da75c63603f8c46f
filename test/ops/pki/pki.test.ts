import { execFileSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { createAuthority, type KeyType } from "../../../src/ops/pki/pki.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("ops/pki/pki");

const keyTypes: readonly KeyType[] = ["ec", "rsa"];
const clock = manualClock();

test("EC and RSA authorities sign EC and RSA certificates that verify", async () => {
  for (const keyType of keyTypes) {
    const authority = await createAuthority({ name: "a", keyType, clock });
    const issuer = new X509Certificate(authority.certificate);
    assert.ok(issuer.ca);
    for (const leafType of keyTypes) {
      const pair = authority.issue({ name: "b", hosts: ["localhost"], keyType: leafType });
      const leaf = new X509Certificate(pair.certificate);
      assert.is(leaf.publicKey.asymmetricKeyType, leafType);
      assert.ok(leaf.checkIssued(issuer) && leaf.verify(issuer.publicKey) && !leaf.ca);
      assert.ok(leaf.checkPrivateKey(createPrivateKey(pair.key)));
    }
  }
});

test("a certificate is good for the names and addresses asked for, and no other", async () => {
  const authority = await createAuthority({ name: "a", clock });
  const leaf = new X509Certificate(
    authority.issue({ name: "b", hosts: ["x.svc", "10.0.0.1", "::1"] }).certificate,
  );
  assert.equal(
    [leaf.checkHost("x.svc"), leaf.checkIP("10.0.0.1"), leaf.checkIP("::1")],
    ["x.svc", "10.0.0.1", "::1"],
  );
  assert.equal([leaf.checkHost("y.svc"), leaf.checkIP("10.0.0.2")], [undefined, undefined]);
});

test("a test can make it expired, not yet valid, or a client's", async () => {
  const authority = await createAuthority({ name: "a", clock });
  const now = clock.wall();
  const times = { notBefore: now - 20_000, notAfter: now - 10_000 };
  const leaf = new X509Certificate(authority.issue({ name: "b", usage: "client", ...times }).certificate);
  assert.is(leaf.validFromDate.getTime(), times.notBefore);
  assert.is(leaf.validToDate.getTime(), times.notAfter);
  assert.equal(leaf.keyUsage, ["1.3.6.1.5.5.7.3.2"]);
  const old = await createAuthority({ name: "a", notAfter: now - 1000, clock });
  assert.is(new X509Certificate(old.certificate).validToDate.getTime(), now - 1000);
});

test("openssl's strict verification agrees", async () => {
  const directory = mkdtempSync(join(tmpdir(), "pki-"));
  for (const keyType of keyTypes) {
    const authority = await createAuthority({ name: "a", keyType, clock });
    writeFileSync(join(directory, "ca"), authority.certificate);
    writeFileSync(join(directory, "leaf"), authority.issue({ name: "b", hosts: ["localhost"] }).certificate);
    const now = String(Math.floor(clock.wall() / 1000));
    const args = ["verify", "-x509_strict", "-purpose", "sslserver", "-attime", now, "-CAfile", "ca", "leaf"];
    assert.is(execFileSync("openssl", args, { cwd: directory }).toString(), "leaf: OK\n");
  }
  rmSync(directory, { recursive: true });
});

test.run();
