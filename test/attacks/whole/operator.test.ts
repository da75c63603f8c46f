/**
 * Attacks by way of the operator's own files and admin port: bad certificates, a bad configuration, web pages of other
 * origins.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pause, sceneOf, times } from "../../support/attack.ts";
import { frontProxyPki } from "../../support/front-proxy.ts";
import { testPki } from "../../support/pki.ts";
import { connectRaw, type RawPeer } from "../../support/raw.ts";
import { askBy, ways } from "../../support/three-ways.ts";

const test = suite("attacks/whole/operator");

const pki = await frontProxyPki();
const { authority } = await testPki();
const blue = authority.issue({ name: "blue", hosts: ["blue.test"] });
const alice = pki.clients.issue({ name: "alice", usage: "client" });

const scene = sceneOf(test, () => ({
  files: {
    "clients.crt": pki.clients.certificate,
    "front-proxy.crt": pki.pair.certificate,
    "front-proxy.key": pki.pair.key,
    "blue.crt": blue.certificate,
    "blue.key": blue.key,
  },
  listenerTls: "clientCAFile: clients.crt, reloadInterval: 100ms",
  listener: `identity: {clientCerts: FrontProxy}, hosts: [{serverNames: [blue.test], tls: {certFile: blue.crt, keyFile: blue.key,
    clientCAFile: clients.crt, reloadInterval: 100ms}, identity: {clientCerts: FrontProxy}}]`,
  upstreamTls: "frontProxy: {certFile: front-proxy.crt, keyFile: front-proxy.key, reloadInterval: 100ms}",
}));

const fileOf = (name: string): string => join(scene.proxy.place.directory, name);

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (await holds()) return;
    await pause(50);
  }
  throw new Error(`Waited in vain for ${what}`);
}

/** Returns the sum of the metric values whose lines match. */
async function metric(rows: RegExp): Promise<number> {
  return [...(await scene.metrics()).matchAll(rows)].reduce((sum, [, value]) => sum + Number(value), 0);
}

/** Asserts that alice is authenticated at both hosts, over each protocol. */
async function servesAlice(): Promise<void> {
  const { port, ca } = scene.proxy.place;
  for (const way of ways)
    for (const servername of ["localhost", "blue.test"]) {
      const asked = { port, ca: ca + authority.certificate, pair: alice, servername, authority: servername };
      const { shown } = await askBy(way, asked);
      assert.is(shown?.certificate, "front-proxy-client", `${way} ${servername}`);
    }
}

const rubbish = (pem: string): Record<string, string> => ({
  nothing: "",
  nil: "nil",
  "an empty certificate": "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
  "one cut off": pem.slice(0, 300),
  "another's": authority.issue({ name: "other", hosts: ["other.test"] }).certificate,
  "16 KiB of garbage": Buffer.alloc(16_384, 7).toString(),
  "a megabyte": "x".repeat(1 << 20),
});

for (const [name, pem] of [
  ["blue.crt", blue.certificate],
  ["front-proxy.crt", pki.pair.certificate],
] as const)
  test(`A50: whatever ${name} becomes, the last good one serves over h2, h1 and Upgrade, and each is counted`, async () => {
    const rejected = (): Promise<number> => metric(/certificate_reloads_total\{.*result="rejected"\} (\d+)/g);
    for (const [what, content] of Object.entries(rubbish(pem))) {
      const before = await rejected();
      writeFileSync(fileOf(name), content);
      await until(`the refusal of ${what}`, async () => (await rejected()) > before);
      await servesAlice();
    }
    writeFileSync(fileOf(name), pem);
  });

test("the honest twin of A50: a renewed certificate is taken, and shown to the next client", async () => {
  const renewed = authority.issue({ name: "blue-2", hosts: ["blue.test"] });
  const accepted = (): Promise<number> => metric(/certificate_reloads_total\{.*blue.*result="ok"\} (\d+)/g);
  const before = await accepted();
  writeFileSync(fileOf("blue.key"), renewed.key);
  writeFileSync(fileOf("blue.crt"), renewed.certificate);
  await until("the new one", async () => (await accepted()) > before);
  await servesAlice();
});

/** Reloads the configuration with this change. Returns the status: 200 if it was accepted, 422 if it was refused. */
async function judged(change: (text: string) => string): Promise<number> {
  const file = fileOf("watchkeeper.yaml");
  const good = readFileSync(file, "utf8");
  const reload = (): Promise<Response> => fetch(`http://${scene.proxy.place.apiAddress}/api/v1/reload`, post);
  writeFileSync(file, change(good));
  const { status } = await reload();
  writeFileSync(file, good);
  assert.is((await reload()).status, 200);
  return status;
}

const post = {
  method: "POST",
  body: "{}",
  headers: { "content-type": "application/json", "x-watchkeeper-operator": "test" },
} as const;

test("A57: a backend's url that is more than an origin and a plain path is refused, no backend is asked, and the last good configuration serves", async () => {
  let visits = 0;
  const metadata = createServer((socket) => {
    visits += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => {
    metadata.listen(0, "127.0.0.1", resolve);
  });
  const address = metadata.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const evil = [
    "file:///etc/passwd",
    "unix:/run/secret.sock",
    `http://user:pass@127.0.0.1:${port}`,
    `http://127.0.0.1:${port}/latest/../meta-data`,
    `http://127.0.0.1:${port}//latest`,
    `http://127.0.0.1:${port}/latest%2fmeta-data`,
    `http://127.0.0.1:${port}?x=y`,
    `http://127.0.0.1:${port}#x`,
    `http://0x7f.1:${port}`,
    `http://2130706433:${port}`,
    "http://169.254.169.254",
    "http://10.0.0.1",
    "https://a b",
    "https://api\\u0000.example",
    "https:///x",
    "gopher://127.0.0.1",
    "//127.0.0.1",
    "",
  ];
  for (const url of evil) {
    const outcome = await judged((text) => text.replace(/url: "[^"]*"/, `url: "${url}"`));
    assert.is(outcome, 422, url);
  }
  assert.is(visits, 0);
  await servesAlice();
  metadata.close();
});

test("A58: keys of Object's own, tags, anchors and merges in the configuration are refused, and change no object", async () => {
  const evil = [
    "__proto__: {polluted: true}",
    '"__proto__": {toString: 1}',
    "constructor: {prototype: {polluted: true}}",
    "? __proto__\n: {x: 1}",
    "logging: {__proto__: {format: JSON}}",
    "logging: {constructor: 1}",
    "health: {ping: {__proto__: {interval: 1s}}}",
    "<<: {logging: {format: Text}}",
    "x: !!js/function 'function () { process.exit(1) }'",
    "x: &a [*a]",
    `x: ${"[".repeat(500)}${"]".repeat(500)}`,
    "a: &a [1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c]",
    "toString: 1",
  ];
  for (const line of evil) assert.is(await judged((text) => `${text}\n${line}\n`), 422, line.slice(0, 60));
  const { members } = await scene.proxy.state();
  assert.is(members, Object.getOwnPropertyNames(Object.prototype).length);
  await servesAlice();
});

test("the honest twin of A57, A58: a configuration with another access log and another name is taken", async () => {
  assert.is(await judged((text) => `${text}\nlogging: {accessLog: All}\n`), 200);
  assert.is(await judged((text) => text.replace("metadata: {name: test}", "metadata: {name: other}")), 200);
  await servesAlice();
});

/** Returns what the API's port answers to these bytes. */
async function answersTo(octets: string): Promise<string> {
  const peer = await connectRaw(apiPort());
  peer.send(octets);
  const answer = await peer.ended();
  peer.socket.destroy();
  return answer;
}

const apiPort = (): number => Number(scene.proxy.place.apiAddress.split(":").at(-1));
const lines = (...all: readonly string[]): string => [...all, "Connection: close", "", ""].join("\r\n");
const own = "Host: 127.0.0.1";

test("A56: a request for another host, and every way around the table of files, is answered with none of the proxy's data", async () => {
  const hosts = [
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil",
    "0",
    "[::1].evil",
    "evil:80@localhost",
    "10.0.0.1",
  ];
  for (const host of hosts)
    assert.match(
      await answersTo(lines("GET /api/v1/clients HTTP/1.1", `Host: ${host}`)),
      /^HTTP\/1.1 4(21|00) /,
      host,
    );
  assert.match(await answersTo(lines("GET /api/v1/clients HTTP/1.0")), /^HTTP\/1.1 421 /);
  const paths = [
    "/../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2fetc/passwd",
    "/\\..\\..\\etc\\passwd",
    "//etc/passwd",
    "/page/../../package.json",
    "/app.js/../../main.ts",
    "/app.js%00.html",
    "http://evil.example/etc/passwd",
    "/__proto__",
    "/constructor",
    "/api/v1/__proto__",
    "/api/v1/clients/../../../etc/passwd",
  ];
  for (const path of paths) {
    const answer = await answersTo(lines(`GET ${path} HTTP/1.1`, own));
    assert.match(answer, /^HTTP\/1.1 (404|400) /, path);
    assert.not.match(answer, /root:|"watchkeeper"/, path);
  }
});

test("A56: another site's page changes nothing, whatever form it sends", async () => {
  const host = `Host: ${scene.proxy.place.apiAddress}`;
  const drain = "POST /api/v1/backends/target/drain HTTP/1.1";
  const json = "Content-Type: application/json";
  const name = "X-Watchkeeper-Operator: eve";
  const length = "Content-Length: 2";
  const forms: readonly (readonly string[])[] = [
    [host, json, length, name, "Origin: https://evil.example"],
    [host, json, length, name, "Origin: null"],
    [host, json, length, name, "Origin: http://127.0.0.1"],
    [host, json, length, name, "Origin: http://localhost"],
    [host, json, length, name, "Sec-Fetch-Site: cross-site"],
    [host, json, length, name, "Sec-Fetch-Site: same-site"],
    [host, json, length],
    [host, json, length, "X-Watchkeeper-Operator: "],
    [host, "Content-Type: text/plain", length, name],
    [host, "Content-Type: text/plain; application/json", length, name],
    [host, "Content-Type: application/x-www-form-urlencoded", length, name],
    [host, length, name],
    ["Host: evil.example", json, length, name],
  ];
  for (const [at, fields] of forms.entries()) {
    const answer = await answersTo([drain, ...fields, "Connection: close", "", "{}"].join("\r\n"));
    assert.match(answer, /^HTTP\/1.1 4(03|15|21) /, `${at}: ${fields.join(" | ")}`);
  }
  const preflight = await answersTo(
    lines(
      "OPTIONS /api/v1/reload HTTP/1.1",
      own,
      "Origin: https://evil.example",
      "Access-Control-Request-Method: POST",
    ),
  );
  assert.match(preflight, /^HTTP\/1.1 405 /);
  assert.not.match(preflight, /access-control-allow/i);
  for (const method of ["PUT", "DELETE", "PATCH", "TRACE"])
    assert.match(
      await answersTo(lines(`${method} /api/v1/reload HTTP/1.1`, own, "Content-Length: 0")),
      /^HTTP\/1.1 405 /,
    );
  assert.match(await scene.metrics(), 'watchkeeper_backend_ready{backend="target"} 1');
});

test("A56: bodies without end, heads without end and silent sockets keep no other client out", async () => {
  const peers: RawPeer[] = [];
  const put = async (octets: string): Promise<void> => {
    const peer = await connectRaw(apiPort());
    peers.push(peer);
    peer.send(octets);
  };
  const head = [
    "POST /api/v1/reload HTTP/1.1",
    own,
    "Content-Type: application/json",
    "X-Watchkeeper-Operator: eve",
  ];
  for (const at of times(80, (index) => index)) {
    if (at % 4 === 0) await put("");
    else if (at % 4 === 1) await put(`GET /api/v1/clients HTTP/1.1\r\n${own}\r\nX-A: `);
    else if (at % 4 === 2)
      await put(
        `${head.join("\r\n")}\r\nTransfer-Encoding: chunked\r\n\r\n${"ff\r\n".concat("x".repeat(255), "\r\n").repeat(100)}`,
      );
    else await put(`GET /api/v1/events HTTP/1.1\r\n${own}\r\n\r\n`);
  }
  const answer = await fetch(`http://${scene.proxy.place.apiAddress}/api/v1/backends`);
  assert.is(answer.status, 200);
  assert.match(await answer.text(), '"target"');
  await put(`GET / HTTP/1.1\r\n${own}\r\nX-A: ${"a".repeat(20_000)}\r\n\r\n`);
  await peers.at(-1)?.expect("431 ");
  for (const peer of peers) peer.socket.destroy();
});

test("the honest twin of A56: an operator on this machine reads, and reloads", async () => {
  const { apiAddress } = scene.proxy.place;
  const port = apiPort();
  for (const host of [apiAddress, `localhost:${port}`, "LocalHost", `[::1]:${port}`, "127.0.0.2"])
    assert.match(
      await answersTo(lines("GET /api/v1/clients HTTP/1.1", `Host: ${host}`)),
      /^HTTP\/1.1 200 /,
      host,
    );
  const { status } = await fetch(`http://${apiAddress}/api/v1/reload`, post);
  assert.is(status, 200);
});

test.run();
