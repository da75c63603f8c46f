import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { TryFiles, type TryOptions } from "../../../../src/ops/cli/setup/try-files.ts";
import { type Config, parseConfig } from "../../../../src/ops/config/config.ts";
import { isProblems } from "../../../../src/ops/config/problem.ts";

const test = suite("ops/cli/setup/try-files");

let files: TryFiles;
test.before(async () => {
  files = await TryFiles.make(wallClock);
});
test.after(() => files.remove());

const access = { origin: "https://a.test:6443", path: "/p", serverName: "a.test", ca: { text: "CA" } };
const user = { token: "hush", as: "bob" };
const context = { name: "prod", namespace: "shop", cluster: { server: "https://a.test:6443/p" }, user };
const wanted: TryOptions = { context, access, pair: undefined, port: 7443, discovers: false };
const pair = { certificate: { text: "C" }, key: { file: "/k" } };

function configFor(more: Partial<TryOptions>): Config {
  const { text, file } = files.writeConfig({ ...wanted, ...more });
  const config = parseConfig(text, file);
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  return config;
}

test("it is a valid configuration for loopback, with the context's server behind it", () => {
  const {
    listeners,
    clusters: [cluster],
  } = configFor({});
  assert.equal(listeners[0]?.address, { host: "127.0.0.1", port: 7443 });
  assert.equal(
    cluster.backends.map(({ url }) => url),
    ["https://a.test:6443/p"],
  );
  assert.equal([cluster.tls?.serverName, listeners[0]?.tls?.identity.clientCerts], ["a.test", "Reject"]);
});

test("a user's certificate is lent to clients that present the proxy's own, from the file it is in", () => {
  const {
    listeners,
    clusters: [cluster],
  } = configFor({ pair });
  assert.is(listeners[0]?.tls?.identity.clientCerts, "ActAsImpersonator");
  assert.is(listeners[0]?.tls?.clientCaFile, join(files.directory, "ca.crt"));
  assert.equal(cluster.tls?.impersonator?.keyFile, "/k");
  assert.is(readFileSync(cluster.tls?.impersonator?.certFile ?? "", "utf8"), "C");
});

test("asked to look for apiservers it does so as the user, and keeps the server as a fallback", () => {
  const {
    clusters: [cluster],
  } = configFor({ discovers: true });
  const { discovery, backends } = cluster;
  assert.equal([backends.length, discovery?.fallback?.url], [0, "https://a.test:6443"]);
  assert.is(cluster.tls?.serverName, "a.test");
  const unnamed = configFor({ discovers: true, access: { ...access, serverName: undefined } });
  assert.is(unnamed.clusters[0].tls?.serverName, "kubernetes.default.svc");
  const asked = discovery?.type === "EndpointSlice" ? (discovery.kubeconfigFile ?? "") : "";
  assert.match(readFileSync(asked, "utf8"), "https://a.test:6443/p");
});

type Kubeconfig = {
  readonly clusters: readonly { readonly cluster: Record<string, string> }[];
  readonly users: readonly { readonly user: Record<string, string> }[];
  readonly contexts: readonly { readonly context: Record<string, string> }[];
};

function kubeconfigFor(more: Partial<TryOptions>): Kubeconfig {
  const file = files.writeKubeconfig({ ...wanted, ...more }, "127.0.0.1:7443");
  return JSON.parse(readFileSync(file, "utf8")) as Kubeconfig;
}

test("the kubeconfig leads to the proxy, below the same path, in the same namespace", () => {
  const { clusters, contexts } = kubeconfigFor({});
  assert.is(clusters[0]?.cluster["server"], "https://127.0.0.1:7443/p");
  assert.is(contexts[0]?.context["namespace"], "shop");
});

test("credentials that pass through stay the client's own; a certificate that the proxy issues stands for one that does not", () => {
  assert.equal(kubeconfigFor({}).users[0]?.user, user);
  const lent = kubeconfigFor({ pair }).users[0]?.user ?? {};
  assert.equal(Object.keys(lent).toSorted(), ["as", "client-certificate-data", "client-key-data"]);
  assert.match(Buffer.from(lent["client-certificate-data"] ?? "", "base64").toString(), /^-----BEGIN CERT/);
});

test("everything is its owner's alone, and goes at the end", async () => {
  const own = await TryFiles.make(wallClock);
  own.writeConfig({ ...wanted, pair, discovers: true });
  own.writeKubeconfig(wanted, "127.0.0.1:1");
  own.renew({ certificate: "new", key: "new" });
  assert.is(statSync(own.directory).mode & 0o777, 0o700);
  for (const name of readdirSync(own.directory))
    assert.is(statSync(join(own.directory, name)).mode & 0o777, 0o600, name);
  own.remove();
  assert.not.ok(existsSync(own.directory));
});

test.run();
