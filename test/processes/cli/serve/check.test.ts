import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http2 from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { createAuthority, type Pair } from "../../../../src/ops/pki/pki.ts";
import { testPki } from "../../../support/pki.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/cli/serve/check");

const { authority, serving } = await testPki();
const directory = mkdtempSync(join(tmpdir(), "check-"));
const file = join(directory, "wk.yaml");
const server = http2.createSecureServer({ cert: serving.certificate, key: serving.key });
let status = 200;
let version = "";

test.before(async () => {
  server.on("stream", (stream, { ":path": path }) => {
    stream.respond({ ":status": status });
    stream.end(path === "/version" ? JSON.stringify({ major: "1", gitVersion: version }) : "");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
test.before.each(() => {
  status = 200;
  version = "";
  put(serving);
  writeFileSync(join(directory, "ca.crt"), authority.certificate);
  configure((server.address() as AddressInfo).port);
});
test.after(() => {
  server.close();
  rmSync(directory, { recursive: true });
});

function put({ certificate, key }: Pair): void {
  writeFileSync(join(directory, "tls.crt"), certificate);
  writeFileSync(join(directory, "tls.key"), key);
}

function configure(port: number, admin = '{metricsAddress: "127.0.0.1:7481"}'): void {
  const text = `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
listeners:
  - {name: kube, address: "127.0.0.1:0", tls: {certFile: tls.crt, keyFile: tls.key}}
clusters:
  - name: default
    backends: [{name: cp-1, url: "https://127.0.0.1:${port}"}]
    tls: {caFile: ca.crt}
admin: ${admin}
`;
  writeFileSync(file, text);
}

/** Returns the output and exit code of the command. Paths and values that change from run to run are shortened. */
function check(...args: string[]): Promise<{ readonly lines: string[]; readonly code: number | null }> {
  const child = spawn(process.execPath, ["bin/watchkeeper.js", "check", ...args]);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  return within(10_000, "the check", ended).then((code) => ({ lines: shorten(output), code }));
}

function shorten(output: string): string[] {
  return output
    .replaceAll(`${directory}/`, "")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:]+Z/g, "TIME")
    .replaceAll(/:\d{4,5}/g, ":PORT")
    .replaceAll(/\d+ ms/g, "N ms")
    .trimEnd()
    .split("\n");
}

test("a sound configuration in front of a ready backend is all ticks", async () => {
  const { lines, code } = await check("--config", file);
  assert.equal(lines, [
    "✓ wk.yaml: valid, listeners: 1, backends: 1",
    "✓ backend CA: certificate good until TIME",
    "✓ listener kube: certificate good until TIME",
    "✓ backend cp-1: https://127.0.0.1:PORT answered /readyz with 200 in N ms, certificate good until TIME",
  ]);
  assert.is(code, 0);
});

test("offline no backend is asked, and each is listed; - is stdin, whose paths start here", async () => {
  const { lines, code } = await check("--offline", "--config", file);
  assert.is(lines.at(-1), "– backend cp-1: https://127.0.0.1:PORT not asked (--offline)");
  assert.is(code, 0);
  const piped = spawnSync(
    process.execPath,
    [join(process.cwd(), "bin/watchkeeper.js"), "check", "--offline", "-c", "-"],
    {
      cwd: directory,
      input: readFileSync(file),
    },
  );
  assert.equal(shorten(piped.stdout.toString()), [
    "✓ stdin: valid, listeners: 1, backends: 1",
    ...lines.slice(1),
  ]);
  assert.is(piped.status, 0);
});

test("a backend that does not ask etcd for progress is a warning, with its page", async () => {
  version = "v1.30.14";
  const old = await check("--config", file);
  assert.match(
    old.lines.at(-2) ?? "",
    /^! backend cp-1: .*, v1\.30\.14 does not ask etcd for progress: etcd needs --watch-progress-notify-interval=5s/,
  );
  assert.is(old.lines.at(-1), "  see watchkeeper docs runbooks/WatchkeeperBackendStale");
  assert.is(old.code, 0);
  version = "v1.31.0";
  const { lines } = await check("--config", file);
  assert.match(lines.at(-1) ?? "", /^✓ backend cp-1/);
});

test("every problem of an invalid file is told, and the exit code is 2", async () => {
  writeFileSync(file, "apiVersion: watchkeeper.dev/v1alpha2\nkind: WatchkeeperConfiguration\nlistenrs: []\n");
  const { lines, code } = await check("--config", file);
  assert.equal(lines, [
    "wk.yaml:1:1: listeners is missing",
    "wk.yaml:1:1: clusters is missing",
    'wk.yaml:3:1: unknown field "listenrs" (did you mean "listeners"?)',
    "  see watchkeeper docs configuration",
  ]);
  assert.is(code, 2);
});

test("a backend that is down or not ready is a finding; offline no backend is asked", async () => {
  status = 500;
  const unready = await check("-c", file);
  assert.match(unready.lines.at(-2) ?? "", /^✗ backend cp-1: .* answered \/readyz with 500/);
  assert.is(unready.lines.at(-1), "  see watchkeeper docs runbooks/WatchkeeperBackendDown");
  configure(1);
  const { lines, code } = await check("--config", file);
  assert.is(lines.at(-1), "  see watchkeeper docs runbooks/WatchkeeperBackendDown");
  assert.match(lines.at(-2) ?? "", /^✗ backend cp-1: https:\/\/127\.0\.0\.1:1: connect ECONNREFUSED/);
  assert.equal([unready.code, code], [1, 1]);
  const offline = await check("--config", file, "--offline");
  assert.equal([offline.lines.length, offline.code], [4, 0]);
});

test("metrics that other machines can read in clear text are a warning, and with TLS and a token they are none", async () => {
  const { port } = server.address() as AddressInfo;
  configure(port, '{metricsAddress: ":7481"}');
  const plain = await check("--config", file, "--offline");
  const found = plain.lines.find((line) => line.startsWith("! admin.metricsAddress: ")) ?? "";
  assert.match(found, 'serves metrics to other machines without "admin.metrics.tls"');
  assert.is(plain.code, 0);
  const secure = "{tls: {certFile: tls.crt, keyFile: tls.key}, authorization: {mode: Webhook}}";
  configure(port, `{metricsAddress: ":7481", metrics: ${secure}}`);
  const { lines } = await check("--config", file, "--offline");
  assert.ok(
    lines.some((line) => line.startsWith("✓ metrics: certificate good until")),
    lines.join("\n"),
  );
  assert.not.ok(
    lines.some((line) => line.startsWith("! ")),
    lines.join("\n"),
  );
});

test("an apiserver that refuses anonymous requests is alive", async () => {
  status = 401;
  assert.is((await check("--config", file)).code, 0);
});

test("a certificate that ends soon is a warning, a key that does not fit or a broken CA a finding", async () => {
  put(authority.issue({ name: "later", hosts: ["localhost"], notAfter: wallClock.wall() + 8 * 86_400_000 }));
  assert.match((await check("--config", file, "--offline")).lines.at(-2) ?? "", /^✓ listener kube/u);
  put(authority.issue({ name: "soon", hosts: ["localhost"], notAfter: wallClock.wall() + 86_400_000 }));
  const soon = await check("--config", file, "--offline");
  assert.equal(soon.lines.slice(-3, -1), [
    "! listener kube: certificate good until TIME",
    "  see watchkeeper docs runbooks/WatchkeeperCertificateExpiring",
  ]);
  assert.is(soon.code, 0);
  put({ ...serving, key: authority.issue({ name: "x" }).key });
  writeFileSync(join(directory, "ca.crt"), "<nil>");
  const { lines, code } = await check("--config", file);
  assert.equal(lines.slice(1), [
    '✗ backend CA: Cannot use "ca.crt": no certificate among its 5 characters',
    "  see watchkeeper docs certificates",
    '✗ listener kube: Cannot use "tls.crt" with "tls.key": the private key is not that of the certificate of "CN=watchkeeper"',
    "  see watchkeeper docs runbooks/WatchkeeperCertificateRefused",
    "– backend cp-1: not asked (no CA)",
  ]);
  assert.is(code, 1);
  writeFileSync(
    join(directory, "ca.crt"),
    (await createAuthority({ name: "other", clock: wallClock })).certificate,
  );
  assert.equal((await check("--config", file)).lines.slice(-2), [
    "✗ backend cp-1: https://127.0.0.1:PORT: its certificate is not signed by tls.caFile ca.crt",
    "  see watchkeeper docs runbooks/WatchkeeperBackendDown",
  ]);
});

test("every pair that it would show is looked at: of each host, of the API, and the client certificates for backends", async () => {
  const bad = "{certFile: tls.crt, keyFile: other.key}";
  writeFileSync(join(directory, "other.key"), authority.issue({ name: "other" }).key);
  const text = readFileSync(file, "utf8")
    .replace(
      "keyFile: tls.key}}",
      `keyFile: tls.key}, hosts: [{serverNames: [kube.example.com], tls: ${bad}}]}`,
    )
    .replace("{caFile: ca.crt}", `{caFile: ca.crt, frontProxy: ${bad}, impersonator: ${bad}}`);
  const admin = `admin: {address: "127.0.0.1:0", tls: ${bad}, metrics: {tls: ${bad}}, `;
  writeFileSync(file, text.replace("admin: {", admin));
  const { lines, code } = await check("--config", file, "--offline");
  const found = lines.filter((line) => /^[✓✗]/u.test(line)).map((line) => line.split(": ", 1)[0]);
  assert.equal(found.slice(2), [
    "✓ listener kube",
    "✗ host kube/kube.example.com",
    "✗ front-proxy",
    "✗ impersonator",
    "✗ admin",
    "✗ metrics",
  ]);
  assert.match(lines.at(-3) ?? "", /the private key is not that of the certificate of "CN=watchkeeper"$/);
  assert.is(code, 1);
});

test("a host whose certificate has none of its names is a warning: no client that verifies it could connect", async () => {
  const host = (name: string): string =>
    `keyFile: tls.key}, hosts: [{serverNames: [${name}], tls: {certFile: tls.crt, keyFile: tls.key}}]}`;
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace("keyFile: tls.key}}", host("kube.example.com")));
  const strange = await check("--config", file, "--offline");
  assert.equal(strange.lines.slice(-3, -1), [
    "! host kube/kube.example.com: its certificate has none of the names kube.example.com",
    "  see watchkeeper docs certificates",
  ]);
  assert.is(strange.code, 0);
  writeFileSync(file, text.replace("keyFile: tls.key}}", host("localhost")));
  const { lines } = await check("--config", file, "--offline");
  assert.is(lines.at(-2), "✓ host kube/localhost: certificate good until TIME");
});

test("a list in a file is read, and those in it are asked; one that is not there is a finding", async () => {
  const { port } = server.address() as AddressInfo;
  const listed = readFileSync(file, "utf8").replace(
    /backends: .*/,
    "discovery: {type: File, file: list.yaml}",
  );
  writeFileSync(file, listed);
  const absent = await check("--config", file);
  assert.equal(absent.lines.slice(2, 4), [
    '✗ discovery: "list.yaml" does not exist',
    "  see watchkeeper docs runbooks/WatchkeeperConfigNotApplied",
  ]);
  assert.is(absent.code, 1);
  writeFileSync(join(directory, "list.yaml"), `[{name: found, url: "https://localhost:${port}"}]`);
  const { lines, code } = await check("--config", file);
  assert.is(lines[2], "✓ discovery: backends in list.yaml: 1");
  assert.match(lines.at(-1) ?? "", /^✓ backend found: https:\/\/localhost:PORT answered/);
  assert.is(code, 0);
});

test("one that takes sockets and says nothing has the page of a black hole", async () => {
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  configure((silent.address() as AddressInfo).port);
  const { lines } = await check("--config", file);
  silent.close();
  assert.is(lines.at(-1), "  see watchkeeper docs runbooks/WatchkeeperBackendDown");
});

test("wrong usage shows the right one", async () => {
  const { lines, code } = await check("--confg", "x");
  assert.ok(lines.includes("usage: watchkeeper check --config FILE [--offline]"));
  assert.is(code, 2);
  assert.is((await check()).code, 2);
});

test.run();
