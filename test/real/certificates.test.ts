/**
 * Which certificates a real kube-apiserver and a real kubectl accept, and which the proxy accepts: 174 client certificates
 * directly and through three kinds of listeners, 42 CA bundles, and 55 pairs of a listener. CERTIFICATE_ROWS: a word
 * that the titles of the client certificates to test must contain.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { bundleRows } from "../support/ca-bundles.ts";
import { type ClientRow, clientBundle, clientRows } from "../support/client-certificates.ts";
import { kubectl } from "../support/kubectl.ts";
import { pairRows } from "../support/listener-pairs.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";
import { until } from "./rig/until.ts";

const test = suite("real/certificates");
const real = testWith(test, [...clusterNeeds, "kubectl"]);
const directory = mkdtempSync(join(tmpdir(), "watchkeeper-certificates-"));
const bundle = join(directory, "client-ca.crt");
const word = process.env["CERTIFICATE_ROWS"] ?? "";
const rows = clientRows.filter(({ title }) => title.includes(word));

let cluster: Cluster;
const urls = new Map<string, string>();
const proxies: Proxy[] = [];

test.before(async () => {
  if (!real.canRun) return;
  writeFileSync(bundle, clientBundle);
  cluster = await startCluster({ apiservers: 1, flags: [`--client-ca-file=${bundle}`] });
  const { folder, pki, frontProxy } = cluster;
  // The apiserver reads the file again, and then also accepts the impersonator, which the cluster's own CA has signed.
  writeFileSync(bundle, clientBundle + readFileSync(pki.ca.certFile, "utf8"));
  const impersonator = pki.issue({ name: "impersonator", subject: "/O=system:masters/CN=impersonator" });
  const direct = cluster.apiserver(0).url;
  const shows = async (): Promise<boolean> =>
    (await userAt(
      direct,
      readFileSync(impersonator.certFile, "utf8"),
      readFileSync(impersonator.keyFile, "utf8"),
    )) !== "refused";
  await until("the apiserver to read its client CAs again", shows, 90_000);
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  const tlsOf = { caFile: pki.ca.certFile, serverName: "kubernetes.default.svc", frontProxy, impersonator };
  const clusters = [{ name: "default", backends, tls: tlsOf }];
  urls.set("direct", direct);
  for (const mode of ["FrontProxy", "Impersonate", "Passthrough"] as const) {
    const own =
      mode === "Passthrough"
        ? { mode }
        : {
            listener: { identity: { clientCerts: mode } },
            listenerTls: { clientCAFile: bundle },
            config: { clusters },
          };
    const proxy = await Proxy.start({ folder, pki, backends, name: mode, ...own });
    proxies.push(proxy);
    urls.set(mode, proxy.url);
  }
});

test.after(async () => {
  rmSync(directory, { recursive: true });
  if (!real.canRun) return;
  for (const proxy of proxies) await proxy.stop();
  await cluster.stop();
});

const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const body = JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" });

/** Returns the user in the form of ClientRow. A handshake that fails is a refusal, like 401. */
function userAt(url: string, cert: string, key: string): Promise<string> {
  return new Promise((resolve) => {
    const fail = (): void => resolve("refused");
    let own: tls.SecureContext;
    try {
      own = tls.createSecureContext({ cert, key, ciphers: "DEFAULT@SECLEVEL=0" });
    } catch {
      return fail(); // OpenSSL cannot present such a certificate
    }
    const options = {
      method: "POST",
      agent: false,
      rejectUnauthorized: false,
      secureContext: own,
      timeout: 20_000,
    };
    const headers = { "content-type": "application/json" };
    const request = https.request(`${url}${path}`, { ...options, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("error", fail);
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => {
        resolve(response.statusCode === 401 ? "refused" : userIn(Buffer.concat(chunks).toString()));
      });
    });
    request.on("timeout", () => request.destroy());
    request.on("error", fail);
    request.end(body);
  });
}

function userIn(text: string): string {
  const found = JSON.parse(text) as {
    status?: { userInfo?: { username: string; groups: readonly string[] } };
    message?: string;
  };
  const user = found.status?.userInfo;
  if (user === undefined) return /system:anonymous/.test(found.message ?? "") ? "none" : text;
  if (user.username === "system:anonymous") return "none";
  const groups = user.groups.filter((group) => group !== "system:authenticated");
  return groups.length === 0 ? user.username : `${user.username}:${groups.join(",")}`;
}

const wrong: string[] = [];

async function compare({ title, apiserver, proxy = apiserver, chain, key }: ClientRow): Promise<void> {
  for (const [mode, url] of urls) {
    const user = await userAt(url, chain, key);
    const expected = mode === "direct" || mode === "Passthrough" ? apiserver : proxy;
    if (user !== expected)
      wrong.push(`${title}, ${mode}: ${user.slice(0, 80)} instead of ${expected.slice(0, 80)}`);
  }
}

real(
  "a client certificate gives the same user, or the same refusal, directly and through each kind of listener",
  async () => {
    for (const row of rows) await compare(row);
    assert.equal(wrong, []);
  },
);

/** Returns true if kubectl accepts a server that presents this certificate. */
async function acceptsWith(row: {
  readonly chain: string;
  readonly key: string;
  readonly bundle: string;
}): Promise<boolean> {
  const ca = join(directory, "ca.crt");
  writeFileSync(ca, row.bundle);
  const secure = { cert: row.chain, key: row.key, ciphers: "DEFAULT@SECLEVEL=0" };
  const server = https.createServer(secure, (_request, response) => response.end("accepted"));
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const to = [`--server=https://localhost:${port}`, `--certificate-authority=${ca}`, "--token=x"];
  const text = await kubectl([...to, "--request-timeout=10s", "get", "--raw", "/readyz"]);
  server.close();
  return text.includes("accepted");
}

real(
  "kubectl trusts a server with a CA bundle as the table says, and accepts a listener's certificate as the table says",
  async () => {
    const odd: string[] = [];
    for (const row of bundleRows)
      if ((await acceptsWith(row)) !== row.isTrusted) odd.push(`CA bundle: ${row.title}`);
    for (const row of pairRows)
      if ((await acceptsWith(row)) !== row.isAccepted) odd.push(`pair: ${row.title}`);
    assert.equal(odd, []);
  },
);

test.run();
