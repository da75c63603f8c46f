/**
 * Which user an apiserver recognizes in a request, through the proxy and directly: for client certificates (front-proxy
 * and impersonation), bearer tokens and no credentials. Nothing that a client sends may change that user.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import { join } from "node:path";
import tls from "node:tls";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { seeded } from "../support/random.ts";
import { type Claim, claim, claimingRequest } from "../support/spoof.ts";
import { within } from "../support/within.ts";
import { order } from "./rig/ask.ts";
import { type Cluster, startCluster, users } from "./rig/cluster.ts";
import { clusterNeeds, testWith } from "./rig/parts.ts";
import type { Pair } from "./rig/pki.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/identity");
const real = testWith(test, clusterNeeds);

const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const body = JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" });
const attempts = Number(process.env["SPOOF_ATTEMPTS"] ?? 500);
const seed = Number(process.env["SPOOF_SEED"] ?? 1);

let cluster: Cluster;
const proxies = new Map<string, Proxy>();
let alice: Pair;

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2, flags: ["--requestheader-uid-headers=X-Remote-Uid"] });
  const { folder, pki, frontProxy } = cluster;
  const impersonator = pki.issue({ name: "impersonator", subject: "/O=system:masters/CN=impersonator" });
  alice = pki.issue({ name: "alice", subject: "/O=readers/O=a, b/CN=alice" });
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  const shared = {
    name: "default",
    backends,
    tls: { caFile: pki.ca.certFile, serverName: "kubernetes.default.svc" },
  };
  for (const clientCerts of ["FrontProxy", "Impersonate"] as const) {
    const tlsOf = { ...shared.tls, frontProxy, impersonator };
    proxies.set(
      clientCerts,
      await Proxy.start({
        folder,
        pki,
        backends,
        name: clientCerts,
        listener: { identity: { clientCerts } },
        listenerTls: { clientCAFile: pki.ca.certFile },
        config: { clusters: [{ ...shared, tls: tlsOf }] },
      }),
    );
  }
});

test.after(async () => {
  if (!real.canRun) return;
  for (const one of proxies.values()) await one.stop();
  await cluster.stop();
});

type UserInfo = {
  readonly username: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
};

function socketTo(url: string, pair: Pair | undefined, alpn: string): Promise<tls.TLSSocket> {
  const { hostname, port } = new URL(url);
  const own =
    pair === undefined ? {} : { cert: readFileSync(pair.certFile), key: readFileSync(pair.keyFile) };
  return new Promise((resolve, reject) => {
    const socket = tls.connect({
      host: hostname,
      port: Number(port),
      servername: "kubernetes.default.svc",
      ca: readFileSync(cluster.caFile),
      ALPNProtocols: [alpn],
      ...own,
    });
    socket.once("error", reject);
    socket.once("secureConnect", () => resolve(socket));
  });
}

/** Sends an HTTP/1.1 request given as bytes. Resolves with the status and the body of the response. */
async function said(url: string, pair: Pair | undefined, octets: string): Promise<string> {
  const socket = await socketTo(url, pair, "http/1.1");
  socket.write(octets, "latin1");
  let text = "";
  for await (const chunk of socket) {
    text += String(chunk);
    if (/\r\n\r\n.*\n?\}?\s*$/s.test(text) && isWhole(text)) break;
  }
  socket.destroy();
  return text;
}

function isWhole(text: string): boolean {
  const end = text.indexOf("\r\n\r\n") + 4;
  const length = /^content-length: (\d+)/im.exec(text.slice(0, end))?.[1];
  if (length !== undefined) return Buffer.byteLength(text.slice(end)) >= Number(length);
  return text.endsWith("0\r\n\r\n");
}

function infoIn(text: string): UserInfo | undefined {
  const json = /"userInfo":(\{.*\})\}\}/s.exec(text)?.[1];
  return json === undefined ? undefined : (JSON.parse(json) as UserInfo);
}

async function reviewed(url: string, pair: Pair | undefined, token = ""): Promise<UserInfo | undefined> {
  const fields: [string, string][] = token === "" ? [] : [["Authorization", `Bearer ${token}`]];
  const octets = claimingRequest({ fields, trailers: [], lines: [] }, { path, host: "kubernetes", body });
  return infoIn(await within(20_000, "a review", said(url, pair, octets)));
}

function directly(pair: Pair | undefined, token = ""): Promise<UserInfo | undefined> {
  return reviewed(cluster.apiserver(0).url, pair, token);
}

function proxyOf(mode: string): Proxy {
  const found = proxies.get(mode);
  if (found === undefined) throw new Error(`No proxy ${mode}`);
  return found;
}

real(
  "a certificate's user, uid and groups arrive as they would directly, four hundred of them too",
  async () => {
    const many = Array.from({ length: 400 }, (_, at) => `/O=team-${at}`).join("");
    const holders = [
      alice,
      cluster.pki.issue({ name: "many", subject: `${many}/CN=many` }),
      cluster.pki.issue({ name: "masters", subject: "/O=system:masters/CN=root" }),
      cluster.pki.issue({ name: "odd", subject: "/O=Ärzte, Köln/O=x=y/CN=system:node:é" }),
      cluster.pki.issue({ name: "uid", subject: "/CN=carol/1.3.6.1.4.1.57683.2=42" }),
    ];
    for (const holder of holders) {
      const direct = await directly(holder);
      assert.ok(direct !== undefined);
      assert.equal(await reviewed(proxyOf("FrontProxy").url, holder), direct);
      const { extra: _, ...rest } = direct;
      assert.equal(await reviewed(proxyOf("Impersonate").url, holder), rest);
    }
  },
);

real("a bearer is its own user, and a client without credentials is anonymous", async () => {
  for (const { url } of proxies.values()) {
    assert.equal(await reviewed(url, undefined, users.bob.token), await directly(undefined, users.bob.token));
    assert.is((await reviewed(url, undefined))?.username, (await directly(undefined))?.username);
  }
});

real("on an Upgrade the apiserver knows the same user", async () => {
  const bob = cluster.pki.issue({ name: "bob-cert", subject: "/CN=bob-by-certificate" });
  const upgrade = [
    "POST /api/v1/namespaces/default/pods/none/exec?command=id HTTP/1.1",
    "Host: kubernetes",
    "Connection: Upgrade",
    "Upgrade: SPDY/3.1",
    "X-Remote-User: admin",
    "X-Remote-Group: system:masters",
    "X-Stream-Protocol-Version: v4.channel.k8s.io",
    "Content-Length: 0",
    "",
    "",
  ].join("\r\n");
  for (const { url } of proxies.values()) {
    const text = await within(20_000, "a refusal", said(url, bob, upgrade));
    assert.match(text, /User \\"bob-by-certificate\\" cannot create resource/);
  }
});

real("a watch that goes on at another apiserver is its holder's there too", async () => {
  const { url } = proxyOf("FrontProxy");
  const socket = await socketTo(url, alice, "h2");
  const session = http2.connect(url, { createConnection: () => socket });
  const stream = session.request({ ":path": "/api/v1/configmaps?watch=1&allowWatchBookmarks=true" });
  let seen = "";
  let isOver = false;
  stream.on("data", (chunk: Buffer) => (seen += chunk.toString()));
  stream.on("close", () => (isOver = true));
  const shows = async (name: string): Promise<void> => {
    const configmap = { apiVersion: "v1", kind: "ConfigMap", metadata: { name } };
    const server = { ...cluster.admin, url: survivor.url };
    await order(server, { method: "POST", path: "/api/v1/namespaces/default/configmaps", body: configmap });
    for (let left = 400; left > 0 && !seen.includes(`"${name}"`); left -= 1)
      await new Promise((resolve) => setTimeout(resolve, 50));
    assert.match(seen, `"${name}"`);
  };
  let survivor = cluster.apiserver(1);
  await shows("first");
  // Both apiservers are restarted one after the other, so the one that has the watch is among them.
  for (const going of [cluster.apiserver(0), cluster.apiserver(1)]) {
    survivor = going === cluster.apiserver(0) ? cluster.apiserver(1) : cluster.apiserver(0);
    await going.kill();
    await shows(`after-${going.name}`);
    await going.restart();
    // Time for the proxy to mark the apiserver ready again, after several successful health checks in a row.
    await new Promise((resolve) => setTimeout(resolve, 5000));
  }
  assert.is(isOver, false);
  session.destroy();
});

/** Certificates that are no front proxy's, each with the text by which the incident names its fault. */
function wrongPairs(): Readonly<Record<string, readonly [pair: Pair, fault: RegExp]>> {
  const { pki } = cluster;
  const of = (name: string, subject: string, issuer = pki.ca): Pair => pki.issue({ name, subject }, issuer);
  return {
    "admin.crt": [of("wrong-admin", "/O=system:masters/CN=kubernetes-admin"), /for \\?"kubernetes-admin/],
    "apiserver-kubelet-client.crt": [
      of("wrong-kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client"),
      /for \\?"kube-apiserver-kubelet-client/,
    ],
    "a pair of another CA": [
      of("wrong-ca", "/CN=front-proxy-client", pki.authority("another-front-proxy-ca")),
      /answers 401/,
    ],
    "a name that is not allowed": [of("wrong-name", "/CN=mallory", pki.frontProxyCa), /answers 401/],
    "an expired pair": [
      pki.issueFor(-1, { name: "wrong-date", subject: "/CN=front-proxy-client" }, pki.frontProxyCa),
      /expired at/,
    ],
  };
}

real(
  "with each of five wrong front-proxy pairs a kubelet gets no other identity, and check fails",
  async () => {
    const { folder, pki } = cluster;
    const kubelet = pki.issue({ name: "kubelet", subject: "/O=system:nodes/CN=system:node:n1" });
    const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
    for (const [what, [frontProxy, fault]] of Object.entries(wrongPairs())) {
      const tlsOf = { caFile: pki.ca.certFile, serverName: "kubernetes.default.svc", frontProxy };
      const name = `wrong-${what.replace(/\W/g, "-")}`;
      const starting = Proxy.start({
        folder,
        pki,
        backends,
        name,
        listener: { identity: { clientCerts: "FrontProxy" } },
        listenerTls: { clientCAFile: pki.ca.certFile },
        config: { clusters: [{ name: "default", backends, tls: tlsOf }] },
      });
      const proxy = await starting.catch(() => undefined);
      // With an expired pair, the proxy does not even start.
      assert.is(proxy === undefined, what === "an expired pair", what);
      if (proxy !== undefined) {
        for (let count = 0; count < 10; count += 1) {
          const octets = claimingRequest(
            { fields: [], trailers: [], lines: [] },
            { path, host: "kubernetes", body },
          );
          const answer = await within(20_000, "an answer", said(proxy.url, kubelet, octets));
          assert.match(answer, /^HTTP\/1.1 503 /, what);
          assert.is(infoIn(answer), undefined, `${what}: ${answer}`);
        }
        const log = readFileSync(proxy.logFile, "utf8");
        const opened = log.split("\n").filter((line) => line.includes("identity-refused"));
        assert.match(opened.join("\n"), frontProxy.certFile, what);
        assert.match(opened.join("\n"), fault, what);
        // A bearer token passes.
        assert.is((await reviewed(proxy.url, undefined, users.bob.token))?.username, "bob");
        await proxy.stop();
      }
      const config = join(folder, `${name}.yaml`);
      const checked = spawnSync(process.execPath, ["bin/watchkeeper.js", "check", "--config", config]);
      assert.is(checked.status, 1, `${what}: ${checked.stdout.toString()}`);
      assert.match(checked.stdout.toString(), fault, what);
    }
  },
);

/** Sends the claim over HTTP/2. The client library sends only well-formed fields. */
async function claimH2(url: string, pair: Pair | undefined, { fields, trailers }: Claim): Promise<string> {
  const socket = await socketTo(url, pair, "h2");
  const session = http2.connect(url, { createConnection: () => socket });
  session.on("error", () => {});
  const headers: http2.OutgoingHttpHeaders = {
    ":method": "POST",
    ":path": path,
    "content-type": "application/json",
  };
  for (const [name, value] of fields) {
    const key = name.toLowerCase();
    headers[key] =
      key === "authorization" ? value : [...[headers[key] ?? []].flat().map(String), value.trim()];
  }
  const stream = session.request(headers, { waitForTrailers: trailers.length > 0 });
  stream.on("wantTrailers", () => {
    stream.sendTrailers(
      Object.fromEntries(trailers.map(([name, value]) => [name.toLowerCase(), value.trim()])),
    );
  });
  stream.end(body);
  let text = "";
  try {
    for await (const chunk of stream) text += String(chunk);
  } catch {
    // The proxy rejected the request by resetting the stream.
  }
  session.destroy();
  return text;
}

real(`none of ${attempts} claims to be another user is believed`, async () => {
  const random = seeded(seed);
  const askers = [
    { mode: "FrontProxy", pair: alice },
    { mode: "Impersonate", pair: alice },
    { mode: "FrontProxy", pair: undefined },
  ] as const;
  const expected = await Promise.all(
    askers.map(async ({ mode, pair }) => JSON.stringify(await reviewed(proxyOf(mode).url, pair))),
  );
  let answered = 0;
  const believed: string[] = [];
  for (let done = 0; done < attempts; done += 1) {
    const at = done % askers.length;
    const { mode, pair } = askers[at] ?? askers[0];
    const { url } = proxyOf(mode);
    const made = claim(random);
    const ask =
      done % 3 === 0 && made.lines.length === 0
        ? claimH2(url, pair, made)
        : said(url, pair, claimingRequest(made, { path, host: "kubernetes", body }));
    const info = infoIn(await within(20_000, "an answer", ask.catch(String)));
    if (info === undefined) continue;
    answered += 1;
    if (JSON.stringify(info) !== expected[at]) believed.push(JSON.stringify([mode, made, info]));
  }
  process.stdout.write(`figure: ${attempts} claims, ${answered} answered, ${believed.length} believed\n`);
  assert.equal(believed, []);
  assert.ok(answered > attempts / 4, `${answered} of ${attempts} were answered at all`);
});

test.run();
