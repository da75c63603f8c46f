import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../../src/base/failure.ts";
import {
  accessOf,
  type ClusterAccess,
  impersonationOf,
  kindOf,
  pairOf,
} from "../../../../src/ops/cli/setup/kubeconfig.ts";

const test = suite("ops/cli/setup/cluster-access");

function access(cluster: Readonly<Record<string, unknown>>): ClusterAccess | string {
  const outcome = accessOf({ name: "prod", namespace: undefined, cluster, user: {} });
  return outcome instanceof Failure ? outcome.message : outcome;
}

const refusal = (cluster: Readonly<Record<string, unknown>>): string => {
  const outcome = access(cluster);
  return typeof outcome === "string" ? outcome : "none";
};

const base64 = (text: string): string => Buffer.from(text).toString("base64");

test("a server is its origin, the path below which it has its cluster, and the name to verify", () => {
  const ca = { "certificate-authority": "/ca" };
  assert.equal(access({ server: "https://10.0.0.1:6443", ...ca }), {
    origin: "https://10.0.0.1:6443",
    path: "",
    serverName: undefined,
    ca: { file: "/ca" },
  });
  const rancher = access({
    server: "https://r.test/k8s/clusters/c-1/",
    "tls-server-name": "other.test",
    ...ca,
  });
  assert.equal(rancher, {
    origin: "https://r.test",
    path: "/k8s/clusters/c-1",
    serverName: "other.test",
    ca: { file: "/ca" },
  });
  const six = access({ server: "https://[fd00::1]:6443", ...ca });
  assert.is(typeof six === "object" && six.origin, "https://[fd00::1]:6443");
});

test("authorities: data before file, and the machine's own when neither is given", () => {
  const server = "https://a.test";
  const given = access({
    server,
    "certificate-authority-data": base64("PEM"),
    "certificate-authority": "/x",
  });
  assert.equal(typeof given === "object" && given.ca, { text: "PEM" });
  const own = access({ server });
  assert.match(typeof own === "object" && "text" in own.ca ? own.ca.text : "", /^-----BEGIN CERTIFICATE/);
});

test("what would not be safe, or cannot be done, is refused with the context's name", () => {
  assert.match(refusal({ server: "https://a", "insecure-skip-tls-verify": true }), /"prod": insecure-skip/);
  assert.match(refusal({ server: "https://a", "proxy-url": "socks5://x" }), "proxy-url");
  assert.match(refusal({ server: "http://10.0.0.1" }), "not on this machine");
  for (const server of ["", "ftp://a", "a:6443", "https://user:hush@a.test", undefined])
    assert.match(refusal({ server }), /is not an https URL/, String(server));
  assert.not.match(refusal({ server: "https://user:hush@a.test" }), "hush");
  assert.is(typeof access({ server: "http://127.0.0.1:8001" }), "object");
});

test("a pair is two halves, in files or as text", () => {
  const pair = pairOf({ "client-certificate-data": base64("C"), "client-key": "/k" });
  assert.equal(pair, { certificate: { text: "C" }, key: { file: "/k" } });
  assert.is(pairOf({ "client-certificate": "/c" }), undefined);
});

test("a user is described without secrets; the user to impersonate is kept", () => {
  assert.is(kindOf({ token: "hush" }), "a bearer token");
  assert.is(kindOf({ exec: { command: "aws" } }), 'a bearer token from "aws"');
  assert.is(kindOf({}), "anonymous: no credentials");
  assert.is(kindOf({ "auth-provider": { name: "oidc" } }), "credentials of the kubeconfig's own");
  assert.is(kindOf({ "client-certificate": "/c", "client-key": "/k" }), "a client certificate");
  assert.equal(impersonationOf({ as: "x", "as-groups": ["g"], token: "hush" }), {
    as: "x",
    "as-groups": ["g"],
  });
});

test.run();
