/**
 * Kubernetes itself issues a certificate for watchkeeper, as docs/certificates.md describes: `pki csr`, `kubectl
 * apply`, `kubectl certificate approve`, and the signing controller of kube-controller-manager. Then the proxy
 * authenticates to the apiservers with it.
 */
import { X509Certificate } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ask, order, whoIs } from "./rig/ask.ts";
import { call } from "./rig/call.ts";
import { Child } from "./rig/child.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, pathOf, testWith } from "./rig/parts.ts";
import type { Pair } from "./rig/pki.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/signing");
const real = testWith(test, [...clusterNeeds, "kubectl", "signer"]);

const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const clientSigner = "kubernetes.io/kube-apiserver-client";

let cluster: Cluster;
let signer: Child;
let kubeconfig: string;

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 1 });
  const { folder, pki } = cluster;
  kubeconfig = cluster.kubeconfig(cluster.admin.url);
  signer = new Child({
    name: "signer",
    command: pathOf("signer"),
    args: ["-kubeconfig", kubeconfig, "-cert", pki.ca.certFile, "-key", pki.ca.keyFile],
    logFile: join(folder, "signer.log"),
  });
});

test.after(async () => {
  if (!real.canRun) return;
  await signer.stop();
  await cluster.stop();
});

const bin = join(import.meta.dirname, "../../bin/watchkeeper.js");

/** Runs the command of docs/certificates.md. Returns the paths of the key and of the manifest. */
async function requested(name: string, signerName: string): Promise<{ key: string; manifest: string }> {
  const dir = join(cluster.folder, name);
  const words = ["pki", "csr", "--dir", dir, "--signer", signerName, "--name", name];
  const { code, err } = await call(process.execPath, [bin, ...words]);
  assert.is(code, 0, err);
  return { key: join(dir, `${name}.key`), manifest: join(dir, `${name}-csr.json`) };
}

async function kubectl(...words: readonly string[]): Promise<string> {
  const { code, out, err } = await call(pathOf("kubectl"), ["--kubeconfig", kubeconfig, ...words]);
  assert.is(code, 0, err);
  return out;
}

/** Returns the certificate of this request as PEM; "" as long as there is none. */
async function signed(name: string): Promise<string> {
  const text = await kubectl("get", "csr", name, "-o", "jsonpath={.status.certificate}");
  return Buffer.from(text, "base64").toString();
}

/** Requests a certificate with this name, and returns the one that Kubernetes signs, with its key. */
async function certificateFor(name: string): Promise<Pair> {
  const { key: keyFile, manifest } = await requested(name, clientSigner);
  await kubectl("apply", "-f", manifest);
  await sleep(2_000);
  assert.is(await signed(name), "", "nothing is signed before it is approved");
  const startedAt = Date.now();
  await kubectl("certificate", "approve", name);
  let certificate = "";
  while (certificate === "" && Date.now() - startedAt < 30_000) {
    certificate = await signed(name);
    if (certificate === "") await sleep(100);
  }
  figure(`signed ${Date.now() - startedAt} ms after it was to be approved`);
  assert.not.equal(certificate, "", signer.tail());
  const certFile = keyFile.replace(/key$/, "crt");
  writeFileSync(certFile, certificate);
  return { certFile, keyFile };
}

/** Returns the user name that an apiserver reads from this certificate. */
async function nameOf(url: string, pair: Pair): Promise<string> {
  const user = await whoIs({ url, caFile: cluster.caFile, pair });
  return typeof user === "number" ? String(user) : user.username;
}

real(
  "what it asks for as a client is signed by Kubernetes' own signer, and the proxy impersonates with it",
  async () => {
    const name = "watchkeeper-impersonator";
    const pair = await certificateFor(name);
    const certificate = new X509Certificate(readFileSync(pair.certFile));
    assert.is(certificate.subject, `CN=${name}`);
    assert.equal(certificate.keyUsage, ["1.3.6.1.5.5.7.3.2"], "for clients, and for nothing else");
    assert.is(await nameOf(cluster.admin.url, pair), name);

    const rbac = "/apis/rbac.authorization.k8s.io/v1";
    const rules = [{ apiGroups: [""], resources: ["users", "groups"], verbs: ["impersonate"] }];
    await order(cluster.admin, {
      method: "POST",
      path: `${rbac}/clusterroles`,
      body: { metadata: { name }, rules },
    });
    await order(cluster.admin, {
      method: "POST",
      path: `${rbac}/clusterrolebindings`,
      body: {
        metadata: { name },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
        subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name }],
      },
    });
    const { folder, pki } = cluster;
    const backends = cluster.apiservers.map(({ name: own, url }) => ({ name: own, url }));
    const tls = { caFile: pki.ca.certFile, serverName: "kubernetes.default.svc", impersonator: pair };
    const proxy = await Proxy.start({
      folder,
      pki,
      backends,
      listener: { identity: { clientCerts: "Impersonate" } },
      listenerTls: { clientCAFile: pki.ca.certFile },
      config: { clusters: [{ name: "default", backends, tls }] },
    });
    try {
      const carol = pki.issue({ name: "carol", subject: "/CN=carol" });
      assert.is(await nameOf(proxy.url, carol), "carol");
    } finally {
      await proxy.stop();
    }
  },
);

real("what it asks for as a server is taken and approved under a signer of one's own", async () => {
  const name = "watchkeeper-serving";
  const { manifest } = await requested(name, "example.com/serving");
  await kubectl("apply", "-f", manifest);
  await kubectl("certificate", "approve", name);
  const { status } = JSON.parse((await ask(cluster.admin, { path: `${requests}/${name}` })).text);
  assert.is(status.conditions[0].type, "Approved");
});

test.run();
