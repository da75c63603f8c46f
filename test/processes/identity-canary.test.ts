/**
 * A whole proxy with a certificate that is not a front proxy's: no client gets another identity, and the incident names
 * the certificate.
 */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../src/base/clock.ts";
import { createAuthority, type Pair } from "../../src/ops/pki/pki.ts";
import { askH1, askH2, frontProxyPki, type JudgingBackend, startJudge } from "../support/front-proxy.ts";
import { testPki } from "../support/pki.ts";
import { type ProxyOptions, startProxy, type TestProxy } from "../support/proxy.ts";
import { within } from "../support/within.ts";

const test = suite("processes/identity-canary");

const pki = await frontProxyPki();
await testPki();
const others = await createAuthority({ name: "another cluster", clock: wallClock });
const kubelet = pki.clients.issue({ name: "system:node:n1", groups: ["system:nodes"], usage: "client" });
const admin = pki.clients.issue({ name: "kubernetes-admin", groups: ["system:masters"], usage: "client" });

const proxies: TestProxy[] = [];
const judges: JudgingBackend[] = [];
test.after.each(async () => {
  for (const proxy of proxies.splice(0)) await proxy.stop();
  for (const judge of judges.splice(0)) judge.stop();
});

async function judgeNamed(name: string): Promise<JudgingBackend> {
  const judge = await startJudge(name, pki);
  judges.push(judge);
  return judge;
}

const tlsOf = (name: string): string =>
  `{certFile: ${name}.crt, keyFile: ${name}.key, reloadInterval: 100ms}`;

async function start(pair: Pair, targets: readonly JudgingBackend[], more: ProxyOptions = {}) {
  const proxy = await startProxy({
    backends: 0,
    targets,
    listenerTls: "clientCAFile: clients.crt",
    listener: "identity: {clientCerts: FrontProxy}",
    upstreamTls: `frontProxy: ${tlsOf("front-proxy")}`,
    ...more,
    files: {
      "clients.crt": pki.clients.certificate,
      "front-proxy.crt": pair.certificate,
      "front-proxy.key": pair.key,
      ...more.files,
    },
  });
  proxies.push(proxy);
  return proxy;
}

function put(proxy: TestProxy, { certificate, key }: Pair, name = "front-proxy"): void {
  writeFileSync(join(proxy.directory, `${name}.crt`), certificate);
  writeFileSync(join(proxy.directory, `${name}.key`), key);
}

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 20_000;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`Not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const asks = (proxy: TestProxy, pair: Pair = kubelet): Promise<string> =>
  within(20_000, "an answer", askH2(proxy, { pair }));

async function readyz(proxy: TestProxy): Promise<string> {
  const response = await fetch(`http://${proxy.running.adminAddress}/readyz?verbose`);
  return `${response.status} ${/\[.\]identity.*/.exec(await response.text())?.[0] ?? "no check"}`;
}

/** Returns the exit code of `watchkeeper check`, and what it prints about the front proxy. */
function check(proxy: TestProxy, ...options: string[]): Promise<string> {
  const words = [
    "bin/watchkeeper.js",
    "check",
    "--config",
    join(proxy.directory, "watchkeeper.yaml"),
    ...options,
  ];
  return new Promise((resolve) => {
    execFile(process.execPath, words, (error, stdout) => {
      const lines = stdout.split("\n").filter((line) => line.includes("front-proxy identities"));
      resolve(`${String(error?.code ?? 0)} ${lines.join()}`);
    });
  });
}

test("check asks each backend with a canary, and fails if one takes another identity", async () => {
  const [good, bad] = [await judgeNamed("good"), await judgeNamed("bad")];
  const proxy = await start(pki.pair, [good, bad]);
  const accepted = (name: string): string => `✓ front-proxy identities at backend ${name}: accepted`;
  assert.is(await check(proxy), `0 ${accepted("good")},${accepted("bad")}`);
  bad.manner = "drifted";
  assert.match(
    await check(proxy),
    /^1 .*✗ front-proxy identities at backend bad: refused \(CN=front-proxy-client\)/,
  );
  bad.manner = "no-uid";
  assert.match(
    await check(proxy),
    /^0 .*! front-proxy identities at backend bad: drops the uid of certificates/,
  );
});

test("check finds an ordinary client certificate of the listener's CA even offline", async () => {
  const proxy = await start(admin, [await judgeNamed("judge")]);
  assert.match(
    await check(proxy, "--offline"),
    /^1 ✗ front-proxy identities: it is an ordinary client certificate: a CA in .*clients.crt/,
  );
  put(proxy, pki.pair);
  assert.is(await check(proxy, "--offline"), "0 ");
});

function refusals(proxy: TestProxy): string[] {
  return proxy.entries.flatMap((entry) =>
    entry.kind === "identity.refused"
      ? [`${entry.backend} ${entry.file.split("/").at(-1)} ${entry.certificate}: ${entry.problem}`]
      : [],
  );
}

const wrong: Readonly<Record<string, readonly [Pair, RegExp]>> = {
  "an administrator's": [admin, /front-proxy.crt .*CN=kubernetes-admin: .*for "kubernetes-admin"/],
  "the apiserver's kubelet client": [
    pki.clients.issue({ name: "kube-apiserver-kubelet-client", groups: ["system:masters"], usage: "client" }),
    /for "kube-apiserver-kubelet-client"/,
  ],
  "of another CA": [
    others.issue({ name: "front-proxy-client", usage: "client" }),
    /CN=front-proxy-client: it answers 401/,
  ],
  "of the front-proxy CA with a name that is not allowed": [
    pki.authority.issue({ name: "mallory", usage: "client" }),
    /CN=mallory: .*for "mallory"/,
  ],
};

for (const [what, [pair, said]] of Object.entries(wrong))
  test(`a pair that is ${what}: a kubelet gets 503 and gets no other identity, /readyz fails, and a bearer passes`, async () => {
    const judge = await judgeNamed("judge");
    const proxy = await start(pair, [judge]);
    for (const ask of [askH2, askH1]) {
      const answer = await within(20_000, "an answer", ask(proxy, { pair: kubelet }));
      assert.match(answer, /^503 .*this proxy's word for the user of a client certificate/);
    }
    assert.is(
      await within(20_000, "an answer", askH2(proxy, { headers: { authorization: "Bearer t" } })),
      "200 bearer t",
    );
    assert.equal(
      judge.seen.filter(({ shown }) => shown !== ""),
      [],
      "no request of a client had the proxy's certificate",
    );
    assert.match(refusals(proxy).join("\n"), said);
    const opened = proxy.entries.find(({ kind }) => kind === "incident.opened");
    assert.match(JSON.stringify(opened), /"identity-refused".*"critical".*front-proxy.crt/);
    assert.match(await readyz(proxy), "500 [-]identity");
    put(proxy, pki.pair);
    await until("the right pair to serve", async () => (await asks(proxy)).startsWith("200"));
    assert.is(await asks(proxy), "200 front-proxy system:node:n1 system:nodes");
    assert.match(await readyz(proxy), "200 [+]identity ok");
    await until("the end of the incident", () => proxy.entries.some(({ kind }) => kind === "incident.ended"));
  });

test("a wrong pair in the files of a running proxy is refused, and the proven one serves on", async () => {
  const judge = await judgeNamed("judge");
  const proxy = await start(pki.pair, [judge]);
  assert.match(await asks(proxy), /^200 front-proxy/);
  const ready = () => proxy.entries.some((entry) => entry.kind === "backend.changed" && entry.to === "ready");
  await until("a ready backend", ready);
  put(proxy, admin);
  await until("the refusal", () => proxy.entries.some(({ kind }) => kind === "certificate.refused"));
  assert.match(
    JSON.stringify(proxy.entries.filter(({ kind }) => kind === "certificate.refused")),
    "kubernetes-admin",
  );
  assert.match(await asks(proxy), /^200 front-proxy/);
  assert.match(await readyz(proxy), "200 [+]identity ok");
});

test("a wrong pair under another name in a changed configuration is refused with the whole configuration", async () => {
  const judge = await judgeNamed("judge");
  const files = { "other.crt": admin.certificate, "other.key": admin.key };
  const proxy = await start(pki.pair, [judge], { files, isFollowing: true });
  await until("a ready backend", async () => (await readyz(proxy)).startsWith("200"));
  const { readFileSync } = await import("node:fs");
  const file = join(proxy.directory, "watchkeeper.yaml");
  writeFileSync(file, readFileSync(file, "utf8").replaceAll("front-proxy.", "other."));
  await until("the refusal", () => proxy.entries.some(({ kind }) => kind === "config.refused"));
  assert.match(
    JSON.stringify(proxy.entries.filter(({ kind }) => kind === "config.refused")),
    "kubernetes-admin",
  );
  assert.match(await asks(proxy), /^200 front-proxy/);
});

test("a backend with other flags gets no asserted identity, while the others serve, also when it is added later", async () => {
  const [good, bad] = [await judgeNamed("good"), await judgeNamed("bad")];
  bad.manner = "drifted";
  const proxy = await start(pki.pair, [good, bad]);
  await until("the refusal", () => refusals(proxy).length > 0);
  for (let count = 0; count < 8; count += 1) assert.match(await asks(proxy), /^200 front-proxy/);
  assert.equal(bad.seen, []);
  assert.match(
    refusals(proxy).join(),
    'bad front-proxy.crt CN=front-proxy-client: it takes every client with a certificate for "front-proxy-client"',
  );
  bad.manner = "takes";
  await until("the proof", () =>
    proxy.entries.some((entry) => entry.kind === "identity.proven" && entry.backend === "bad"),
  );
});

test("an apiserver that is busy or too old gets no asserted identity, and the incident says why", async () => {
  for (const [manner, said] of [
    ["busy", "it answers 429"],
    ["old", "apiservers before Kubernetes 1.28"],
  ] as const) {
    const judge = await judgeNamed("judge");
    judge.manner = manner;
    const proxy = await start(pki.pair, [judge]);
    assert.match(await asks(proxy), "503 ");
    await until("an incident", () => refusals(proxy).length > 0);
    assert.match(refusals(proxy).join(), said);
    assert.equal(judge.seen, []);
    judge.manner = "takes";
    await until("an answer", async () => (await asks(proxy)).startsWith("200"));
  }
});

test("an apiserver without --requestheader-uid-headers is proven, and the journal and the API say what it drops", async () => {
  const judge = await judgeNamed("judge");
  judge.manner = "no-uid";
  const proxy = await start(pki.pair, [judge]);
  assert.match(await asks(proxy), /^200 front-proxy/);
  const response = await fetch(`http://${proxy.running.apiAddress}/api/v1/backends`);
  assert.match(await response.text(), "front-proxy: proven, drops the uid of certificates");
});

test("with workers the parent asks, and the workers send no asserted identity to a backend that it has not proven", async () => {
  const judge = await judgeNamed("judge");
  const proxy = await start(admin, [judge], { extra: "workers: 2" });
  await until("the workers", () => proxy.running.workers.every(({ state }) => state === "serving"));
  for (let count = 0; count < 6; count += 1) assert.match(await asks(proxy), "503 ");
  assert.equal(judge.seen, []);
  put(proxy, pki.pair);
  await until("the right pair to serve", async () => (await asks(proxy)).startsWith("200"));
  for (let count = 0; count < 6; count += 1)
    assert.is(await asks(proxy), "200 front-proxy system:node:n1 system:nodes");
  const rotated = pki.authority.issue({ name: "front-proxy-next", usage: "client" });
  put(proxy, rotated);
  await until("the next pair", () => judge.sockets.includes("front-proxy-next"));
});

test("an impersonator that is an ordinary client is refused, and one in mode ActAsImpersonator needs no right", async () => {
  const judge = await judgeNamed("judge");
  const more = (mode: string): ProxyOptions => ({
    listener: `identity: {clientCerts: ${mode}}`,
    upstreamTls: `impersonator: ${tlsOf("front-proxy")}`,
  });
  const refused = await start(admin, [judge], more("Impersonate"));
  assert.match(await asks(refused), /^503 /);
  const lent = await start(admin, [judge], more("ActAsImpersonator"));
  assert.match(await asks(lent), /^200 /);
});

test.run();
