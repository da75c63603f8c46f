import { execFileSync, spawnSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { checkPair } from "../../../../src/proxy/tls/serving-pair.ts";

const test = suite("ops/cli/setup/pki");
const directory = mkdtempSync(join(tmpdir(), "pki-init-"));

test.after(() => rmSync(directory, { recursive: true, force: true }));

type Said = { readonly code: number | null; readonly out: string; readonly err: string };

function pki(...args: string[]): Said {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["bin/watchkeeper.js", "pki", ...args]);
  return { code: status, out: stdout.toString(), err: stderr.toString() };
}

const read = (...path: string[]): string => readFileSync(join(directory, ...path), "utf8");
const certificateIn = (...path: string[]): X509Certificate => new X509Certificate(read(...path));

test("init makes pairs that a listener takes, each signed by its own authority", () => {
  const dir = join(directory, "init");
  const said = pki("init", "--dir", dir, "--host", "api.example.test", "--host", "10.0.0.9");
  assert.is(said.code, 0, said.err);
  const serving = certificateIn("init", "watchkeeper.crt");
  const pair = checkPair(read("init", "watchkeeper.crt"), read("init", "watchkeeper.key"), Date.now());
  assert.ok("fingerprint" in pair && pair.fingerprint === serving.fingerprint256);
  assert.ok(serving.checkHost("api.example.test") && serving.checkIP("10.0.0.9") && serving.checkIP("::1"));
  const [ca, frontCa] = [certificateIn("init", "ca.crt"), certificateIn("init", "front-proxy-ca.crt")];
  assert.ok(serving.verify(ca.publicKey) && !serving.verify(frontCa.publicKey));
  const front = certificateIn("init", "front-proxy-client.crt");
  assert.match(front.subject, "CN=front-proxy-client");
  assert.ok(front.verify(frontCa.publicKey) && !front.verify(ca.publicKey));
  assert.ok(ca.checkPrivateKey(createPrivateKey(read("init", "ca.key"))));
});

test("its files are their owner's alone, what it prints holds no key, and it says what each is for", () => {
  const dir = join(directory, "modes");
  const { out } = pki("init", "--dir", dir);
  for (const name of readdirSync(dir)) {
    assert.is(statSync(join(dir, name)).mode & 0o777, 0o600, name);
    assert.match(out, `${join(dir, name)} `);
  }
  assert.not.match(out, "PRIVATE");
});

test("a second init changes nothing and says what is in its way", () => {
  const dir = join(directory, "twice");
  pki("init", "--dir", dir);
  const before = read("twice", "watchkeeper.key");
  const said = pki("init", "--dir", dir);
  assert.is(said.code, 1);
  assert.match(said.err, "watchkeeper.key");
  assert.is(read("twice", "watchkeeper.key"), before);
});

test("a request is signed by its own key, and asks for the hosts; openssl agrees", () => {
  const dir = join(directory, "csr");
  const said = pki("csr", "--dir", dir, "--signer", "example.test/serving", "--host", "api.example.test");
  assert.is(said.code, 0, said.err);
  const args = ["req", "-in", join(dir, "watchkeeper.csr"), "-verify", "-noout", "-text"];
  const text = execFileSync("openssl", args, { stdio: ["ignore", "pipe", "pipe"] }).toString();
  for (const part of ["DNS:api.example.test", "IP Address:127.0.0.1", "TLS Web Server Authentication"])
    assert.match(text, part);
  const object: unknown = JSON.parse(read("csr", "watchkeeper-csr.json"));
  assert.match(JSON.stringify(object), '"signerName":"example.test/serving"');
  assert.match(JSON.stringify(object), Buffer.from(read("csr", "watchkeeper.csr")).toString("base64"));
});

test("a client's request has no hosts and another usage", () => {
  const dir = join(directory, "client");
  pki("csr", "--dir", dir, "--signer", "kubernetes.io/kube-apiserver-client", "--name", "wk");
  const text = execFileSync("openssl", ["req", "-in", join(dir, "wk.csr"), "-noout", "-text"]).toString();
  assert.match(text, "TLS Web Client Authentication");
  assert.not.match(text, "DNS:");
});

test("wrong words are usage errors", () => {
  for (const args of [
    [],
    ["renew"],
    ["csr"],
    ["init", "--host", "a b"],
    ["init", "--dri", "x"],
    ["init", "--signer", "x"],
  ])
    assert.is(pki(...args).code, 2, args.join(" "));
});

test.run();
