/**
 * A user's own kubectl through `watchkeeper try`, with each kind of credentials that a kubeconfig may contain; and `pki
 * csr`.
 */
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Call, call, type Output } from "./rig/call.ts";
import { type Cluster, startCluster, users } from "./rig/cluster.ts";
import { clusterNeeds, figure, pathOf, testWith } from "./rig/parts.ts";

const test = suite("real/try");
const real = testWith(test, [...clusterNeeds, "kubectl"]);

let cluster: Cluster;

test.before(async () => {
  if (real.canRun) cluster = await startCluster({ apiservers: 2 });
});

test.after(async () => {
  if (real.canRun) await cluster.stop();
});

const bin = fileURLToPath(new URL("../../bin/watchkeeper.js", import.meta.url));

/** Writes a kubeconfig for the first apiserver. */
function kubeconfig(name: string, user: object): string {
  const file = join(cluster.folder, `try-${name}`);
  const server = { server: cluster.apiserver(0).url, "certificate-authority": cluster.caFile };
  const named = { clusters: [{ name: "c", cluster: server }], users: [{ name: "u", user }] };
  const contexts = [{ name: "x", context: { cluster: "c", user: "u", namespace: "kube-system" } }];
  const rest = { contexts, "current-context": "x" };
  writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "Config", ...named, ...rest }));
  return file;
}

/** Writes a credential plugin that prints this status and records each run. */
function plugin(name: string, status: object): object {
  const file = join(cluster.folder, `plugin-${name}`);
  const credential = { apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status };
  writeFileSync(`${file}.json`, JSON.stringify(credential), { mode: 0o600 });
  writeFileSync(file, '#!/bin/sh\necho run >> "$0.runs"\ncat "$0.json"\n');
  chmodSync(file, 0o755);
  // The plugin is in the kubeconfig's folder, because paths in a kubeconfig are relative to that folder.
  const apiVersion = "client.authentication.k8s.io/v1";
  return { exec: { apiVersion, command: `./plugin-${name}`, interactiveMode: "IfAvailable" } };
}

class Trial {
  readonly #call: Call;
  readonly kubeconfig: string;

  private constructor(running: Call, file: string) {
    this.#call = running;
    this.kubeconfig = file;
  }

  static async start(name: string, user: object, flags: readonly string[] = []): Promise<Trial> {
    const args = [bin, "try", "--kubeconfig", kubeconfig(name, user), "--port", "0", ...flags];
    const running = new Call(process.execPath, args, { timeoutMs: 120_000 });
    const said = await running.says(/^export KUBECONFIG=\S+$/m, 30_000);
    return new Trial(running, /^export KUBECONFIG=(\S+)$/m.exec(said)?.[1] ?? "");
  }

  kubectl(args: readonly string[]): Promise<Output> {
    const env = { KUBECONFIG: this.kubeconfig, HOME: join(cluster.folder, "home") };
    return call(pathOf("kubectl"), args, { env, timeoutMs: 30_000 });
  }

  says(pattern: RegExp): Promise<string> {
    return this.#call.says(pattern, 45_000);
  }

  /** Returns the user that the apiserver recognizes for kubectl's credentials. */
  async whoami(args: readonly string[] = []): Promise<{ username: string; groups: readonly string[] }> {
    const said = await this.kubectl(["auth", "whoami", "-o", "json", ...args]);
    assert.is(said.code, 0, said.err);
    const { status } = JSON.parse(said.out) as {
      status: { userInfo: { username: string; groups: string[] } };
    };
    return status.userInfo;
  }

  async end(): Promise<Output> {
    this.#call.signal("SIGINT");
    const said = await this.#call.ended;
    assert.is(said.code, 0, said.err);
    assert.not.ok(existsSync(this.kubeconfig));
    return said;
  }
}

const pem = (file: string): string => readFileSync(file, "utf8");

/** Issues a certificate for carol, a user who has no token. */
function carol(): { readonly certFile: string; readonly keyFile: string } {
  return cluster.pki.issue({ name: "carol", subject: "/O=readers/CN=carol" });
}

real("a bearer token passes, and is printed nowhere", async () => {
  const trial = await Trial.start("bearer", { token: users.alice.token });
  assert.is((await trial.whoami()).username, "alice");
  assert.is(statSync(trial.kubeconfig).mode & 0o777, 0o600);
  const said = await trial.kubectl(["get", "namespaces", "-o", "name"]);
  assert.match(said.out, "namespace/default");
  const { out, err } = await trial.end();
  assert.is((out + err).includes(users.alice.token), false);
});

real("a client certificate is shown for kubectl, whose own key the cluster never sees", async () => {
  const { certFile, keyFile } = carol();
  const trial = await Trial.start("certificate", { "client-certificate": certFile, "client-key": keyFile });
  const { username, groups } = await trial.whoami();
  assert.equal([username, groups.includes("readers")], ["carol", true]);
  // Another user of this machine cannot act as carol: a client without the key that `try` wrote is not authenticated.
  const server = /"server": "([^"]+)"/.exec(pem(trial.kubeconfig))?.[1] ?? "";
  const bare = ["--insecure-skip-tls-verify", "--kubeconfig=/dev/null", `--server=${server}`, "--token=none"];
  assert.match((await trial.kubectl([...bare, "get", "namespaces"])).err, /Unauthorized|logged in/);
  assert.is(pem(trial.kubeconfig).includes(Buffer.from(pem(keyFile)).toString("base64")), false);
  await trial.end();
});

real("kubectl --as goes up as it is, and the apiserver judges", async () => {
  const admin = cluster.pki.issue({ name: "boss", subject: "/O=system:masters/CN=boss" });
  const trial = await Trial.start("as", {
    "client-certificate": admin.certFile,
    "client-key": admin.keyFile,
  });
  assert.is((await trial.whoami(["--as=dave"])).username, "dave");
  await trial.end();
});

real("an exec plugin's token is kubectl's own affair", async () => {
  const trial = await Trial.start("plugin-token", plugin("token", { token: users.alice.token }));
  assert.is((await trial.whoami()).username, "alice");
  const { out, err } = await trial.end();
  assert.is((out + err).includes(users.alice.token), false);
});

real("an exec plugin's certificate is shown for kubectl", async () => {
  const { certFile, keyFile } = carol();
  const status = { clientCertificateData: pem(certFile), clientKeyData: pem(keyFile) };
  const trial = await Trial.start("plugin-certificate", plugin("certificate", status));
  assert.is((await trial.whoami()).username, "carol");
  const runs = join(cluster.folder, "plugin-certificate.runs");
  assert.is(readFileSync(runs, "utf8"), "run\n");
  await trial.end();
});

real("asked to, it finds the apiservers behind the server, and outlives that one", async () => {
  const trial = await Trial.start("discover", { token: users.admin.token }, ["--discover"]);
  await trial.says(new RegExp(`${cluster.apiserver(1).address}:6443 .*to=ready`));
  cluster.apiserver(0).blackHole();
  const at = Date.now();
  const said = await trial.kubectl(["get", "namespaces", "-o", "name"]);
  assert.is(said.code, 0, said.err);
  figure(`kubectl get in front of a black hole: ${Date.now() - at} ms`);
  cluster.apiserver(0).heal();
  await trial.end();
});

real("the request that `pki csr` writes is one that the apiserver takes", async () => {
  const dir = join(cluster.folder, "csr");
  for (const signer of ["kubernetes.io/kube-apiserver-client", "example.test/serving"]) {
    const name = signer.replace(/.*\//, "");
    const made = await call(process.execPath, [
      bin,
      "pki",
      "csr",
      "--dir",
      dir,
      "--signer",
      signer,
      "--name",
      name,
    ]);
    assert.is(made.code, 0, made.err);
    const args = [
      `--kubeconfig=${cluster.kubeconfig(cluster.admin.url)}`,
      "create",
      "-f",
      join(dir, `${name}-csr.json`),
    ];
    const said = await call(pathOf("kubectl"), args);
    assert.is(said.code, 0, said.err);
  }
});

test.run();
